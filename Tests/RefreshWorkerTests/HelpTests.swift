import Foundation
import Testing

@testable import RefreshWorker

@Suite("The help")
struct HelpTests {
    static let everyCommand = Command.program.tree.map(\.words)

    private static func help(_ words: [String]) throws -> String {
        let parsed = try Command.program.parse(words + ["--help"])
        guard let text = parsed.text else {
            Issue.record("\(words) --help is understood as \(parsed)")
            return ""
        }
        return text
    }

    @Test("is available for every command in every form", arguments: everyCommand)
    func isThere(words: [String]) throws {
        let text = try Self.help(words)
        #expect(text.hasPrefix((["refresh-worker"] + words).joined(separator: " ") + ": "))
        for arguments in [["-h"] + words, ["help"] + words, ["--help"] + words] {
            #expect(try Command.program.parse(arguments).text == text)
        }
    }

    @Test("mentions every option, operand, subcommand, setting and exit code", arguments: everyCommand)
    func mentionsAll(words: [String]) throws {
        let text = try Self.help(words)
        let command = try #require(Command.program.tree.first { $0.words == words })
        let names =
            command.options.map { "--\($0.name)" } + command.operands.map(\.placeholder)
            + command.subcommands.compactMap(\.words.last) + command.settings.map { "--\($0.rawValue)" }
            + command.exitCodes.map { "  \($0.rawValue) " } + ["--help", "Usage:"]
        for name in names {
            #expect(text.contains(name), "\(name)")
        }
        #expect(command.exitCodes.contains(.usage))
        #expect(command.subcommands.isEmpty == false || command.examples.isEmpty == false || words == ["version"])
    }

    @Test("fits a terminal of 80 columns, except for text that users copy", arguments: everyCommand)
    func fits(words: [String]) throws {
        let command = try #require(Command.program.tree.first { $0.words == words })
        let examples = command.examples.map { "  \($0.key)" }
        for line in try Self.help(words).split(separator: "\n") where !examples.contains(String(line)) {
            let isOneWord = line.split(separator: " ").count == 1
            #expect(line.count <= 80 || isOneWord, "\(line)")
        }
    }

    @Test("fits a narrow terminal too", arguments: everyCommand)
    func fitsNarrow(words: [String]) throws {
        let text = try #require(try Command.program.parse(words + ["--help"], width: 40).text)
        let command = try #require(Command.program.tree.first { $0.words == words })
        let copied = command.examples.map { "  \($0.key)" }
        // A purpose is the comment of its example.
        let lines = text.split(separator: "\n").filter { !copied.contains(String($0)) && !$0.hasPrefix("  # ") }
        for line in lines where line.count > 40 {
            #expect(line.contains { $0 == "-" || $0 == "/" || $0 == "_" || $0 == "." }, "only a term is wider: \(line)")
        }
        #expect(lines.count { $0.count > 40 } < lines.count / 4)
    }

    @Test("has examples that the program accepts", arguments: everyCommand)
    func examplesWork(words: [String]) throws {
        let command = try #require(Command.program.tree.first { $0.words == words })
        for example in command.examples {
            // The words between the program's name and the shell's own operators.
            let parts = example.key.split(separator: " ").map(String.init)
            let start = try #require(parts.lastIndex(of: "refresh-worker"), "\(example.key)")
            let arguments = parts[(start + 1)...].prefix { !["|", ">", "<"].contains($0) }
            #expect(throws: Never.self, "\(example.key)") { try Command.program.parse(Array(arguments)) }
        }
    }

    @Test("says which settings a reload applies, and which files it reads again")
    func namesReloadable() throws {
        // Of each setting, the text that is laid out over several lines.
        let text = try Self.help([]).split(whereSeparator: \.isWhitespace).joined(separator: " ")
        for setting in Setting.all {
            let end = [setting.change.note, setting.shownDefault.map { "Default: \($0)" }].compactMap(\.self)
            #expect(text.contains(([setting.usage, setting.summary] + end).joined(separator: " ")))
        }
    }

    @Test("takes precedence over everything else on the line")
    func wins() throws {
        let text = try Self.help(["grants", "show"])
        let arguments = ["grants", "show", "alice", "--nonsense", "--help"]
        #expect(try Command.program.parse(arguments).text == text)
    }

    @Test("The runbook has a row for every exit code", arguments: ExitCode.allCases)
    func runbook(code: ExitCode) throws {
        let file = URL(filePath: #filePath).appending(path: "../../../docs/runbook.md").standardized
        let lines = try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
        let rows = lines.drop { $0 != "## Exit codes" }.compactMap { $0.split(separator: "|").first }
        #expect(rows.contains { $0.split { !$0.isNumber }.contains("\(code.rawValue)") })
    }

    @Test("explains every exit code, and each flag takes a value in all commands or in none")
    func tablesAgree() {
        #expect(ExitCode.allCases.allSatisfy { !$0.meaning.isEmpty })
        var arities: [String: Set<Bool>] = [:]
        for option in Command.program.tree.flatMap(\.options) {
            arities[option.name, default: []].insert(option.placeholder != nil)
        }
        for setting in Setting.all {
            arities[setting.name.rawValue, default: []].insert(setting.placeholder != nil)
        }
        #expect(arities.filter { $0.value.count > 1 }.isEmpty)
    }

    @Test("breaks lines between words and leaves long words whole")
    func wraps() {
        #expect(HelpPage.wrap("aa bb cc", width: 5) == ["aa bb", "cc"])
        #expect(HelpPage.wrap("aa /a/long/path cc", width: 5) == ["aa", "/a/long/path", "cc"])
    }
}
