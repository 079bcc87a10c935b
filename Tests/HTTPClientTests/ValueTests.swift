import Base
import Testing

@testable import HTTPClient

@Suite("Endpoints and form bodies")
struct ValueTests {
    @Test(
        "An endpoint is https, or http to this machine",
        arguments: [
            ("https://oauth2.googleapis.com/token", "https://oauth2.googleapis.com/token"),
            ("HTTPS://OAuth2.GoogleAPIs.com", "https://oauth2.googleapis.com/"),
            ("https://example.com:8443/a/b?c=d", "https://example.com:8443/a/b"),
            ("https://example.com?c=d", "https://example.com/"),
            ("https://10.0.0.1/x", "https://10.0.0.1/x"),
            ("https://[2001:db8::1]:443/x", "https://[2001:db8::1]:443/x"),
            ("http://localhost:8080/token", "http://localhost:8080/token"),
            ("http://LOCALHOST/", "http://localhost/"),
            ("http://127.0.0.1", "http://127.0.0.1/"),
            ("http://127.9.8.7:1/", "http://127.9.8.7:1/"),
            ("http://[::1]:8080/", "http://[::1]:8080/"),
        ]
    )
    func acceptedEndpoint(url: String, description: String) throws {
        let endpoint = try Endpoint(url)
        #expect(endpoint.url == url)
        #expect("\(endpoint)" == description)
    }

    @Test(
        "Every other URL is refused with its reason",
        arguments: [
            ("", Reason.noScheme), ("example.com", .noScheme), ("https:/example.com", .noScheme),
            ("ftp://example.com/", .notHTTPS), ("file:///etc/passwd", .notHTTPS),
            ("http://example.com/", .notHTTPS), ("http://127.0.0.1.example.com/", .notHTTPS),
            ("http://localhost.example.com/", .notHTTPS), ("http://127.1/", .notHTTPS),
            ("http://2130706433/", .notHTTPS), ("http://0177.0.0.1/", .notHTTPS), ("http://127.0.0.01/", .notHTTPS),
            ("http://128.0.0.1/", .notHTTPS), ("http://0.0.0.0/", .notHTTPS), ("http://[::2]/", .notHTTPS),
            ("http://127.0.0.256/", .notHTTPS), ("http://localhost./", .notHTTPS),
            ("https://user@example.com/", .userInfo), ("https://user:password@example.com/", .userInfo),
            ("http://127.0.0.1@example.com/", .userInfo), ("https://example.com/#top", .fragment),
            ("https:///path", .badHost), ("https://?q", .badHost), ("https://:443/", .badHost),
            ("https://exa%6dple.com/", .badHost), ("https://[::1/", .badHost), ("https://[fe80::1%25eth0]/", .badHost),
            ("https://[example]/", .badHost), ("https://.example.com/", .badHost), ("https://a..b/", .badHost),
            ("https://-x.com/", .badHost),
            ("https://example.com:/", .badPort), ("https://example.com:0/", .badPort),
            ("https://example.com:65536/", .badPort), ("https://example.com:44x/", .badPort),
            ("https://example.com:+443/", .badPort), ("https://[::1]x/", .badPort),
            ("http://127.0.0.1\\@example.com/", .badCharacter), ("https://example.com/a b", .badCharacter),
            ("https://example.com/\r\nX: y", .badCharacter), ("https://exämple.com/", .badCharacter),
            ("https://example.com/" + String(repeating: "x", count: 9000), .tooLong),
        ]
    )
    func refusedEndpoint(url: String, reason: Reason) {
        #expect(throws: FormatError(reason.rawValue)) { try Endpoint(url) }
    }

    enum Reason: String {
        case tooLong = "the URL is longer than 8192 bytes"
        case badCharacter = "the URL has a blank or another character that must be percent-encoded"
        case noScheme = "the URL does not begin with https://"
        case notHTTPS = "the URL is not https (http is for localhost, 127.0.0.0/8 and [::1] only)"
        case userInfo = "the URL has a user name or password in it"
        case fragment = "the URL has a fragment (#)"
        case badHost = "the URL has no host, or one with characters that no host name has"
        case badPort = "the URL's port is not a number from 1 to 65535"
    }

    @Test(
        "A form's names and values are percent-encoded as browsers do",
        arguments: [
            ([], ""),
            ([("a", "")], "a="),
            ([("grant_type", "refresh_token"), ("id", "1-a.b_c*d")], "grant_type=refresh_token&id=1-a.b_c*d"),
            ([("a b", "1//0g+/=&?%~")], "a+b=1%2F%2F0g%2B%2F%3D%26%3F%25%7E"),
            ([("ü", "\u{0}\r\n€")], "%C3%BC=%00%0D%0A%E2%82%AC"),
        ]
    )
    func formBody(fields: [(String, String)], encoded: String) {
        var form = FormBody()
        for (name, value) in fields { form.append(name, value) }
        #expect(String(decoding: form.finish().reveal(), as: UTF8.self) == encoded)
    }

    @Test("A form accepts bytes that are not text, and grows as needed")
    func formBytes() {
        let bytes = [UInt8](repeating: 0xFF, count: 3000)
        var form = FormBody()
        bytes.withUnsafeBytes { form.append("x", $0.bytes) }
        #expect(form.finish().reveal() == Array(("x=" + String(repeating: "%FF", count: 3000)).utf8))
    }

    @Test(
        "libcurl's codes map to kinds of failure",
        arguments: [
            (6, false, HTTPError.Kind.resolve), (5, false, .resolve), (7, false, .connect), (97, false, .connect),
            (35, false, .tls), (77, false, .tls), (60, false, .certificate), (28, false, .timeout),
            (28, true, .timeout), (55, true, .sendFailed), (16, true, .receiveFailed), (18, true, .receiveFailed),
            (52, true, .receiveFailed), (56, true, .receiveFailed), (92, true, .receiveFailed),
            (3, false, .invalidURL), (27, true, .other), (1, false, .other),
        ]
    )
    func kinds(code: UInt32, requestIssued: Bool, kind: HTTPError.Kind) {
        #expect(HTTPError.Kind(curlCode: code, requestIssued: requestIssued) == kind)
    }
}
