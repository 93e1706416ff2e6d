//! A server that gives one answer, whatever is asked, and keeps what was asked.

use std::sync::{Arc, Mutex};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

pub struct Canned {
    pub url: String,
    asked: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Canned {
    /// `answer` is a status line and headers, each on its line. Each connection gets it once.
    pub async fn start(answer: &str, body: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let head = answer.trim().replace('\n', "\r\n");
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 {head}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        );
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&asked);
        let task = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let request = read(&mut stream).await;
                seen.lock().unwrap().push(request);
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        Self { url, asked, task }
    }

    /// The requests, as they were sent.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

impl Drop for Canned {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn read(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
            });
            if body.len() >= length.unwrap_or(0) {
                return text.into_owned();
            }
        }
        if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
            return String::from_utf8_lossy(&bytes).into_owned();
        }
    }
}
