import Foundation
import TestSupport
import Testing

@testable import HTTPServer

@Suite("Basic credentials")
struct BasicCredentialsTests {
    private static func credentials(_ headers: [ServerRequest.Field]) -> BasicCredentials {
        BasicCredentials(of: ServerRequest(method: "POST", path: "/", headers: headers))
    }

    private static func encoded(_ text: String) -> String { Data(text.utf8).base64EncodedString() }

    @Test(
        "are a name and a password, each decoded as a form is",
        arguments: [
            ("mailer:rwc_secret", "mailer", "rwc_secret"), ("a:b:c", "a", "b:c"), ("a:", "a", ""), (":", "", ""),
            ("my+mailer:100%25+sure%3A", "my mailer", "100% sure:"), ("caf%C3%A9:~", "caf\u{e9}", "~"),
            ("a:?>~", "a", "?>~"), ("ab:\u{ff}\u{fe}", "ab", "\u{ff}\u{fe}"),
        ]
    )
    func present(text: String, name: String, password: String) {
        for scheme in ["Basic ", "bASIC  "] {
            let header = scheme + Self.encoded(text)
            #expect(Self.credentials([("authorization", header)]) == .present(name: name, password: password))
        }
    }

    @Test("are missing without a header and under another scheme", arguments: [nil, "", "Bearer YTpi", "YTpi"])
    func missing(value: String?) {
        #expect(Self.credentials(value.map { [("Authorization", $0)] } ?? []) == .missing)
    }

    @Test(
        "are malformed if they are not the Base64 of a name and a password",
        arguments: [
            "", " ", "a:b", "YTpi YTpi", "YTpi,", "YTp", "YTpiYw", "YTpiYw=", "YTpiYw===", "YTpiYx==", "====", "YWI=",
            "YTr_", "YTr-", "YTpi\n",
        ]
    )
    func malformed(value: String) {
        #expect(Self.credentials([("Authorization", "Basic \(value)")]) == .malformed)
    }

    @Test("are malformed in two headers, even with the same text")
    func twoHeaders() {
        let header: ServerRequest.Field = ("Authorization", "Basic YTpi")
        #expect(Self.credentials([header, header]) == .malformed)
    }
}
