import Foundation
import Testing

@Suite("The articles of AccountClient.docc")
struct ArticleTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent(
        "../.."
    )
    /// The overview's one line is in docs/app.md too. It needs the Keychain.
    private static let overview = #"let client = try AccountClient(baseURL: backendURL, tokens: KeychainTokenStore())"#

    @Test(
        "Each piece of code is compiled: with the tests, or with the example for iOS",
        arguments: ["AccountClient.md", "SignIn.md", "ConnectGoogle.md", "ErrorsAndSessions.md"]
    )
    func code(article: String) throws {
        let text = try Self.text("Sources/AccountClient/AccountClient.docc/\(article)")
        let blocks = text.components(separatedBy: "```swift\n").dropFirst().map { $0.components(separatedBy: "```")[0] }
        #expect(!blocks.isEmpty)
        let sources = [
            "Tests/AccountClientTests/ArticleSamples.swift", "Examples/iOS/GoogleConsent.swift",
        ]
        let compiled = try sources.map { Self.unindented(try Self.text($0)) }
        for block in blocks where block.trimmingCharacters(in: .newlines) != Self.overview {
            #expect(compiled.contains { $0.contains(Self.unindented(block)) }, "not compiled:\n\(block)")
        }
    }

    private static func text(_ path: String) throws -> String {
        try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
    }

    /// Without indentation, which differs within a function.
    private static func unindented(_ code: String) -> String {
        code.components(separatedBy: "\n").map { $0.trimmingCharacters(in: .whitespaces) }.joined(separator: "\n")
    }
}
