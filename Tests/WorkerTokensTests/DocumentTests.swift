import Foundation
import Testing

@Suite("The code of docs/services-swift.md")
struct DocumentTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent(
        "../.."
    )

    @Test(
        "The document shows each example whole, which scripts/check-package compiles",
        arguments: [
            "AsyncHTTPClientTransport.swift", "HummingbirdService.swift", "NewestMail.swift", "VaporService.swift",
        ]
    )
    func quotes(file: String) throws {
        let compiled = try Self.text("Examples/Servers/\(file)")
        let declaration = try #require(compiled.range(of: "\n///"))
        let document = try Self.text("docs/services-swift.md")
        let code = compiled[compiled.index(after: declaration.lowerBound)...]
        #expect(document.contains("```swift\n\(code)```\n"))
    }

    private static func text(_ path: String) throws -> String {
        try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
    }
}
