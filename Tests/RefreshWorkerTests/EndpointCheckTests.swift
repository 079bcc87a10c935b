import Testing

@testable import RefreshWorker

@Suite("An endpoint")
struct EndpointCheckTests {
    @Test(
        "is good when it is https, or on this machine",
        arguments: [
            "https://oauth2.googleapis.com/token", "https://example.com", "HTTPS://Example.com:8443/a?b=c",
            "https://10.0.0.1/token", "https://[2001:db8::1]:443/", "http://localhost:8080/token",
            "http://127.0.0.1/token", "http://127.255.1.2:1", "http://[::1]:9/", "http://LOCALHOST",
        ]
    )
    func good(address: String) {
        #expect(checkEndpoint(address) == nil)
    }

    @Test(
        "is refused for what it is",
        arguments: [
            ("", "https://"), ("oauth2.googleapis.com/token", "https://"), ("file:///etc/passwd", "https://"),
            ("http://example.com", "must be https"), ("http://localhost.example.com", "must be https"),
            ("http://127.0.0.1.example.com", "must be https"), ("http://127.1", "must be https"),
            ("http://0127.0.0.1", "must be https"), ("http://127.0.0.01", "must be https"),
            ("http://127.0.0.256", "must be https"), ("http://[::2]/", "must be https"),
            ("http://0.0.0.0/", "must be https"), ("http://2130706433/", "must be https"),
            ("https://", "host"), ("https:///path", "host"), ("https://:443/", "host"), ("https://a..b/", "host"),
            ("https://a:0/", "host"), ("https://a:65536/", "host"), ("https://a:x/", "host"), ("https://a:/", "host"),
            ("https://[::1", "host"), ("https://[]/", "host"), ("https://[::1]x/", "host"), ("https://a%2eb/", "host"),
            ("https://user@example.com/", "user or password"), ("http://localhost@evil.com/", "user or password"),
            ("https://example.com/#x", "fragment"), ("https://exa mple.com/", "spaces"),
            ("https://example.com\\@evil.com", "backslashes"), ("https://exämple.com/", "ASCII"),
        ]
    )
    func bad(address: String, reason: String) throws {
        let fault = try #require(checkEndpoint(address))
        #expect(fault.contains(reason))
    }
}
