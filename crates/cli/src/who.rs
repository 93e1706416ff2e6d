//! Who runs this command, for the audit log.

use std::{env, fs, os::unix::fs::MetadataExt};

/// The user of the operating system, and the role in the database if the store has roles.
pub fn who(store: &str) -> String {
    let user = match env::var("SUDO_USER").ok().filter(|name| !name.is_empty()) {
        Some(behind) => format!("{} (sudo by {behind})", user()),
        None => user(),
    };
    match tidegate::postgres_role(store) {
        Some(role) => format!("{user}, role {role}"),
        None => user,
    }
}

/// By the process's owner: variables can say anything, and in containers they often say nothing.
fn user() -> String {
    let owner = fs::metadata("/proc/self").map(|process| process.uid()).ok();
    let accounts = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let variable = || env::var("USER").or_else(|_| env::var("LOGNAME")).ok();
    match owner {
        Some(uid) => name_of(uid, &accounts).unwrap_or_else(|| format!("uid {uid}")),
        None => variable().unwrap_or_else(|| "unknown".to_owned()),
    }
}

fn name_of(uid: u32, accounts: &str) -> Option<String> {
    accounts.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, number) = (fields.next()?, fields.nth(1)?);
        (number.parse() == Ok(uid)).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_of_the_process_and_the_role_are_named() {
        let accounts = "root:x:0:0::/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\nbroken\n";
        assert_eq!(name_of(1000, accounts).as_deref(), Some("ann"));
        assert_eq!(name_of(7, accounts), None);
        let named = [
            "postgres://tide:se%40cret@db/x?sslmode=require",
            "postgresql://tide@db",
            "host=db user=tide password=secret",
        ];
        for address in named {
            assert_eq!(who(address), format!("{}, role tide", who("sqlite:a@b.db")));
        }
        assert_eq!(who("postgres://db/x"), who("sqlite:a@b.db"));
    }
}
