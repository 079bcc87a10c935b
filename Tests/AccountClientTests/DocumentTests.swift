import Foundation
import Testing

@Suite("The code of docs/app.md")
struct DocumentTests {
    @Test(
        "The document shows the code of the example, which scripts/check-package compiles",
        arguments: [("Session.swift", "final class Session"), ("GoogleConsent.swift", "func askGoogle")]
    )
    func quotes(file: String, code: String) throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../..")
        let compiled = try String(contentsOf: root.appendingPathComponent("Examples/iOS/\(file)"), encoding: .utf8)
        let document = try String(contentsOf: root.appendingPathComponent("docs/app.md"), encoding: .utf8)
        let blocks = document.components(separatedBy: "```swift\n").dropFirst().map {
            $0.components(separatedBy: "```")[0]
        }
        let block = try #require(blocks.first { $0.contains(code) })
        #expect(compiled.contains(block))
    }
}
