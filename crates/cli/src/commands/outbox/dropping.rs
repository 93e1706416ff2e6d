//! `tidegate outbox drop`: dead messages go for good, but not by accident and not without a copy.

use super::{
    audited,
    list::selection,
    steer::{Decided, carry_out, dead_ids, named, say},
};
use crate::{app::App, args::outbox::DropArgs, exit::Exit, replaced::Replaced, show::number};
use anyhow::{Context, Result, bail};
use serde_json::json;
use std::{
    io::{self, IsTerminal, Write},
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};
use tidegate::{
    MessageId, OutboxStore,
    outbox::{Decision, Selection},
    sinks::line,
};

/// Removes dead messages for good, after a copy was written.
pub async fn run(app: &App, store: &dyn OutboxStore, args: DropArgs) -> Result<Exit> {
    let ids = named(store, &args.ids).await?;
    let asked = ids.as_ref().map(Vec::len);
    let which = Selection { ids, ..selection(args.which.clone()) };
    if which == Selection::default() && !args.all {
        bail!("name messages, or choose by --topic, --sink or --reason, or take --all");
    }
    let dead = dead_ids(store, which).await?;
    if args.dry_run {
        return dry_run(app, &dead, asked);
    }
    let copy = if args.discard || dead.is_empty() { None } else { Some(place(app, &args)?) };
    if asked.is_none() && !dead.is_empty() && !args.yes && !confirmed(dead.len(), copy.as_ref())? {
        app.say("nothing was dropped");
        return Ok(Exit::No);
    }
    if let Some(path) = &copy {
        export(store, &dead, path).await?;
        let messages = number::dead_messages(dead.len() as u64);
        app.say(&format!("{messages} written to {}", path.display()));
    }
    let by = audited::line(app, &args.why, &about(&dead, copy.as_deref()));
    let which = Selection { ids: Some(dead), ..Selection::default() };
    let (decision, more) = (Decision::Drop, json!({ "copy": copy }));
    carry_out(app, store, Decided { decision, which, by, asked, more }).await
}

/// Which messages, and where their copy is.
fn about(dead: &[MessageId], copy: Option<&Path>) -> String {
    let copy = copy.map(|path| format!("copy in {}", path.display()));
    format!("{}; {}", audited::stretches(dead), copy.as_deref().unwrap_or("no copy"))
}

fn dry_run(app: &App, dead: &[MessageId], asked: Option<usize>) -> Result<Exit> {
    let exit = say(app, "would drop", dead.len() as u64, asked, json!({ "ids": dead }))?;
    app.say("nothing was changed");
    Ok(exit)
}

/// Where the copy goes. A file that exists already is never replaced.
fn place(app: &App, args: &DropArgs) -> Result<PathBuf> {
    let path = args.export.clone().unwrap_or_else(own_name);
    if let Some(what) = app.protected.find(&path) {
        bail!("--export is {what}: name another file");
    }
    if path.symlink_metadata().is_ok() {
        bail!("`{}` exists already: name another file with --export", path.display());
    }
    Ok(path)
}

/// No other command has the same, also within a second.
fn own_name() -> PathBuf {
    let millis = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    PathBuf::from(format!("dropped-{millis}-{}.ndjson", std::process::id()))
}

/// Asks whoever sits at the terminal. Elsewhere nobody can be asked.
fn confirmed(messages: usize, copy: Option<&PathBuf>) -> Result<bool> {
    let messages = number::dead_messages(messages as u64);
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        bail!("this would drop {messages}: confirm it with --yes, or look at it with --dry-run");
    }
    let kept = match copy {
        Some(path) => format!("A copy is written to {} first.", path.display()),
        None => "No copy is kept.".to_owned(),
    };
    eprint!("Drop {messages} for good? {kept} [y/N] ");
    io::stderr().flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// Writes the messages to a file, which is durable before anything is removed.
async fn export(store: &dyn OutboxStore, ids: &[MessageId], path: &Path) -> Result<()> {
    let advice = "nothing was dropped: name another file with --export, or take --discard";
    let mut file = Replaced::new_file(path).context(advice)?;
    for id in ids {
        // Another may have dropped it meanwhile.
        let Some(stored) = store.message(id.clone()).await? else { continue };
        let mut text = Vec::new();
        line::push(&mut text, &stored.message.item()).map_err(io::Error::other)?;
        file.write(String::from_utf8_lossy(&text).trim_end()).context(advice)?;
    }
    file.finish().context(advice)?;
    Ok(())
}
