use super::*;

#[test]
fn pauses_stay_in_the_upper_half() {
    let pause = jitter(CONFLICT_PAUSE);
    assert!(pause >= CONFLICT_PAUSE / 2 && pause <= CONFLICT_PAUSE);
}
