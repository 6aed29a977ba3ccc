//! The part of the browser's debugging protocol that these tests need: messages separated by zero
//! bytes, over two pipes.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A browser with one page.
pub struct Browser {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    next: u64,
    session: String,
    /// Errors and warnings on the console, and uncaught exceptions.
    pub said: Vec<String>,
    /// Requests of the page to other addresses.
    pub asked: Vec<String>,
    profile: PathBuf,
}

/// Returns the path of the browser, which has different names on different systems.
fn find_browser() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let all = std::env::split_paths(&path).flat_map(|d| names.map(|n| d.join(n)));
    all.into_iter().find(|p| p.is_file())
}

impl Browser {
    /// A browser with an empty page; `None`, with a printed reason, if there is no browser.
    pub fn start(name: &str) -> Option<Self> {
        let Some(program) = find_browser() else {
            println!("skipped: no chromium here (apt-get install chromium)");
            return None;
        };
        let profile = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("browser-{name}"));
        let _ = std::fs::remove_dir_all(&profile);
        // The shell connects the pipes to the descriptors that the browser uses.
        let script = "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1";
        let mut child = Command::new("sh")
            .args(["-c", script])
            .arg(program)
            .args([
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",
                "--no-first-run",
                "--remote-debugging-pipe",
            ])
            .arg(format!("--user-data-dir={}", profile.display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let to = child.stdin.take().expect("a pipe");
        let from = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut browser = Browser {
            child,
            to,
            from,
            next: 0,
            session: String::new(),
            said: Vec::new(),
            asked: Vec::new(),
            profile,
        };
        let target = browser.call("Target.createTarget", &json!({"url": "about:blank"}));
        let id = target["targetId"].as_str().expect("a page");
        let of = json!({"targetId": id, "flatten": true});
        let session = browser.call("Target.attachToTarget", &of);
        browser.session = session["sessionId"].as_str().expect("a session").to_owned();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), &json!({}));
        }
        Some(browser)
    }

    fn message(&mut self) -> Value {
        let mut bytes = Vec::new();
        self.from
            .read_until(0, &mut bytes)
            .expect("the browser lives");
        assert_eq!(bytes.pop(), Some(0), "the browser ended");
        serde_json::from_slice(&bytes).expect("JSON")
    }

    fn record_message(&mut self, m: &Value) {
        let p = &m["params"];
        match m["method"].as_str() {
            Some("Runtime.exceptionThrown") => self.said.push(p["exceptionDetails"].to_string()),
            Some("Runtime.consoleAPICalled") if p["type"] == "error" || p["type"] == "warning" => {
                self.said.push(p["args"].to_string());
            }
            Some("Log.entryAdded") if p["entry"]["level"] == "error" => {
                self.said.push(p["entry"]["text"].to_string());
            }
            Some("Network.requestWillBeSent") => {
                let url = p["request"]["url"].as_str().unwrap_or_default().to_owned();
                if !["file:", "data:", "blob:", "about:"]
                    .iter()
                    .any(|s| url.starts_with(s))
                {
                    self.asked.push(url);
                }
            }
            _ => {}
        }
    }

    /// Sends a command and waits for the answer.
    pub fn call(&mut self, method: &str, params: &Value) -> Value {
        self.next += 1;
        let id = self.next;
        let mut m = json!({"id": id, "method": method, "params": params});
        if !self.session.is_empty() {
            m["sessionId"] = self.session.as_str().into();
        }
        let mut bytes = m.to_string().into_bytes();
        bytes.push(0);
        self.to.write_all(&bytes).expect("the browser listens");
        loop {
            let m = self.message();
            if m["id"] == id {
                assert!(m["error"].is_null(), "{method}: {}", m["error"]);
                return m["result"].clone();
            }
            self.record_message(&m);
        }
    }

    /// Sets the window and the colours, opens a page, and waits until it is drawn.
    pub fn open(&mut self, page: &Path, state: &str, width: u32, theme: &str) {
        let size =
            json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 700});
        self.call("Emulation.setDeviceMetricsOverride", &size);
        let dark = json!({"features": [{"name": "prefers-color-scheme", "value": theme}]});
        self.call("Emulation.setEmulatedMedia", &dark);
        self.call("Page.navigate", &json!({"url": "about:blank"}));
        let url = format!("file://{}{state}", page.display());
        self.call("Page.navigate", &json!({"url": url}));
        self.until("document.documentElement.dataset.ready !== undefined");
    }

    /// Waits until an expression is true; after a minute the test fails.
    pub fn until(&mut self, expression: &str) {
        let wait = format!(
            "new Promise((ok) => {{ let n = 0; const look = () => ({expression}) ? ok(true) : ++n > 3000 ? ok(false) : setTimeout(look, 20); look(); }})"
        );
        // A page that the browser is leaving gives no answer, so the call is repeated.
        for _ in 0..3 {
            let of = json!({"expression": wait, "awaitPromise": true, "returnByValue": true});
            let r = self.call("Runtime.evaluate", &of);
            match &r["result"]["value"] {
                Value::Bool(true) => return,
                Value::Bool(false) => break,
                _ => {}
            }
        }
        panic!("never true: {expression}; the console said {:?}", self.said);
    }

    /// Returns the value of an expression in the page.
    pub fn value(&mut self, expression: &str) -> Value {
        let of = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let r = self.call("Runtime.evaluate", &of);
        assert!(r["exceptionDetails"].is_null(), "{expression}: {r}");
        r["result"]["value"].clone()
    }

    /// Presses a key.
    pub fn key(&mut self, key: &str) {
        let code = match key {
            "ArrowRight" => 39,
            "ArrowDown" => 40,
            "ArrowLeft" => 37,
            "ArrowUp" => 38,
            "Enter" => 13,
            "Tab" => 9,
            "Escape" => 27,
            "Home" => 36,
            "End" => 35,
            " " => 32,
            _ => 0,
        };
        for kind in ["keyDown", "keyUp"] {
            let mut of =
                json!({"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code});
            if key == "Enter" && kind == "keyDown" {
                of["text"] = "\r".into();
            }
            self.call("Input.dispatchKeyEvent", &of);
        }
    }

    /// Returns a picture of the window, as PNG in base64.
    pub fn picture(&mut self) -> String {
        let r = self.call("Page.captureScreenshot", &json!({"format": "png"}));
        r["data"].as_str().expect("a picture").to_owned()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The process was started here.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.profile);
    }
}
