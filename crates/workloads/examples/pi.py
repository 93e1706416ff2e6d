"""Estimates pi: tidegate run --exec 'python3 pi.py' --runs 1000"""
import json, random, sys

snapshot = json.loads(sys.stdin.readline())["snapshot"] or {}
darts = snapshot.get("darts", 1000)
for line in sys.stdin:
    run = json.loads(line)
    rng = random.Random(int(run["seed"]))
    hits = sum(rng.random() ** 2 + rng.random() ** 2 < 1 for _ in range(darts))
    answer = {"index": run["index"], "result": hits, "numbers": {"pi": 4 * hits / darts}}
    print(json.dumps(answer), flush=True)
