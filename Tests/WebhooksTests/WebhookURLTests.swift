import Testing

@testable import Webhooks

@Suite struct `The URL of a webhook` {
    @Test(arguments: [
        "http://a.example:1/", "http://a.example:65535/", "https://a.example:443", "http://127.0.0.1:8080/x",
        "HTTPS://A.Example/Hook", "http://[2001:db8::7]/x",
    ]) func `is kept as it was written`(text: String) {
        #expect(WebhookURL.checked(text) == text)
    }

    /// A connection to such a port always fails, and each event would be tried for days.
    @Test(arguments: ["http://a.example:0/", "http://a.example:65536/hook", "https://u:p@a.example:99999"])
    func `names no port that does not exist`(text: String) {
        #expect(WebhookURL.checked(text) == nil)
    }

    @Test(arguments: [
        "http:///hook", "https://:8080/hook", "http:a.example", "//a.example/hook", "ws://a.example/",
        "http://a.example/ho ok", "http://a.example/\u{e9}", "http://a.example/\n", "http://a.example/\u{0}",
        "http://a.example/\u{7f}", "http://a.ex\u{200b}ample/",
    ]) func `has a host, and nothing that could begin another line of a request`(text: String) {
        #expect(WebhookURL.checked(text) == nil)
    }

    @Test func `has 2,000 bytes at most`() {
        let start = "http://a.example/"
        let longest = start + String(repeating: "x", count: 2_000 - start.utf8.count)
        #expect(WebhookURL.checked(longest) == longest)
        #expect(WebhookURL.checked(longest + "x") == nil)
    }

    /// Logs and answers must not contain what lets somebody else post to the receiver, or read it.
    @Test(arguments: [
        ("https://a.example/hook", "https://a.example/hook"),
        ("https://user@a.example/hook", "https://a.example/hook"),
        ("https://user:word@a.example:8443/", "https://a.example:8443/"),
        ("https://a.example/hook?key=1&other=2", "https://a.example/hook"),
        ("https://a.example/hook#part", "https://a.example/hook"),
        ("https://user:word@a.example/hook?key=1#part", "https://a.example/hook"),
        ("http://user:word@[2001:db8::7]:9/x?y", "http://[2001:db8::7]:9/x"),
    ]) func `is shown without what may be secret`(text: String, shown: String) {
        #expect(WebhookURL.shown(text) == shown)
    }
}
