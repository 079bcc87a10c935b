import Foundation
import Testing

@testable import RefreshWorker
@testable import Status

@Suite("A command that the program tells people to run")
struct PrintedCommandTests {
    private static let root = URL(filePath: #filePath).appending(path: "../../..").standardized

    /// The commands in the texts of these files, up to a pipe, with a word in place of each value.
    private static func commands(in folder: String) throws -> [String] {
        let all = FileManager.default.enumerator(atPath: root.appending(path: folder).path)
        let files = all.map { $0.compactMap { $0 as? String }.filter { $0.hasSuffix(".swift") } } ?? []
        return try files.flatMap { file in
            let text = try String(contentsOf: root.appending(path: "\(folder)/\(file)"), encoding: .utf8)
            return commands(of: text, in: /(?:"|run: )refresh-worker ([a-z][^"]*)"/)
        }
    }

    private static func commands(of text: String, in pattern: Regex<(Substring, Substring)>) -> [String] {
        text.matches(of: pattern).map { match in
            String(match.1.prefix { !"|<>".contains($0) }.replacing(/\\\(.*\)/, with: "X"))
        }
    }

    private func check(_ command: String) {
        let words = command.split(separator: " ").map(String.init)
        #expect(throws: Never.self, "refresh-worker \(command)") { _ = try Command.program.parse(words) }
    }

    @Test("with a finding is accepted", arguments: Finding.Kind.allCases)
    func finding(kind: Finding.Kind) {
        let program = "refresh-worker "
        if kind.command.hasPrefix(program) { check(String(kind.command.dropFirst(program.count))) }
    }

    @Test(
        "in the text of a finding, of the doctor or of another command is accepted",
        arguments: ["Sources/Status", "Sources/GoogleOAuth", "Sources/RefreshWorker/Commands"]
    )
    func texts(folder: String) throws {
        let commands = try Self.commands(in: folder)
        #expect(commands.contains { $0.hasPrefix("google-events") })
        for command in commands { check(command) }
    }

    @Test("to look at a problem, or to mend it, is accepted as the runbook writes it")
    func runbook() throws {
        let text = try String(contentsOf: Self.root.appending(path: "docs/runbook.md"), encoding: .utf8)
        let steps = text.components(separatedBy: "\n- **").filter { $0.hasPrefix("Look:") || $0.hasPrefix("Do:") }
        let commands = Self.commands(of: steps.joined(), in: /`refresh-worker ([a-z][^`]*)`/)
        #expect(commands.contains { $0.hasPrefix("google-events verify") })
        for command in commands { check(command) }
    }
}
