import Base
import Storage
import Testing

@testable import RefreshWorker

@Suite("The manual pages, completions and version")
struct ManualTests {
    private static let table = CompletionTable(.program)

    private static func text(of form: HelpForm) throws -> String {
        let command = try Command.program.parse(["help", "--format", form.rawValue])
        guard let text = command.text else {
            Issue.record("help --format \(form) is understood as \(command)")
            return ""
        }
        return text
    }

    @Test("name every command, flag and setting", arguments: HelpForm.allCases)
    func nameAll(form: HelpForm) throws {
        let text = try Self.text(of: form).replacing("\\-", with: "-")
        for setting in Setting.all {
            #expect(text.contains(setting.name.rawValue))
            #expect(form != .settingsManual || text.contains(".B \(setting.name.environmentName)="))
        }
        guard form != .settingsManual else { return }
        #expect(text.contains("no-switch"))
        for command in Command.program.tree {
            #expect(command.words.last.map { text.contains($0) } ?? true)
            for option in command.options { #expect(text.contains(option.name)) }
        }
    }

    @Test("a manual page has no line that troff would read as a request by mistake, and none that is too long")
    func isSafe() throws {
        let requests = [".\\\"", ".nh", ".ad l", ".TH", ".SH", ".SS", ".PP", ".TP", ".B ", ".nf", ".fi", ".RS", ".RE"]
        for form in [HelpForm.commandManual, .settingsManual] {
            for line in try Self.text(of: form).split(separator: "\n") {
                #expect(!line.hasPrefix("'") && !line.contains("~"), "\(line)")
                #expect(!line.hasPrefix(".") || requests.contains { line.hasPrefix($0) }, "\(line)")
            }
        }
        var page = ManualPage(name: "page", section: 1, summary: "")
        page.verbatim([".hidden 'a' \\b --c"])
        #expect(page.text.contains("\n\\&.hidden \\(aqa\\(aq \\eb \\-\\-c\n"))
    }

    @Test("completions know the values of flags")
    func values() throws {
        let list = try #require(Self.table.entries.first { $0.path == "grants list" })
        let values = Dictionary(uniqueKeysWithValues: list.flags.map { ($0.name, $0.value) })
        #expect(values["state"] == .choices(GrantState.allCases.map(\.rawValue)))
        #expect(values["log-level"] == .choices(["error", "warning", "notice", "info", "debug"]))
        #expect(values["config"] == .file)
        #expect(values["json"] == .some(nil))
        #expect(values["label"] == .other)
        #expect(Self.table.entries.first { $0.path == "grants import" }?.takesFile == true)
        #expect(Self.table.entries.first { $0.path == "help keys" }?.subcommands.map(\.name).contains("rotate") == true)
        #expect(Set(Self.table.entries.map(\.path)).count == Self.table.entries.count)
    }

    @Test("the summary of a flag ends with its first sentence")
    func sentences() {
        #expect("A file. It is read.".firstSentence == "A file")
        #expect("the key; needed".firstSentence == "the key")
        #expect("A file.".firstSentence == "A file")
        #expect("Ask a.b.c for it".firstSentence == "Ask a.b.c for it")
    }

    @Test("help names the documents where they are")
    func documents() throws {
        func folder(_ program: String, _ existing: String...) -> String {
            DocumentFolder.of(program: program) { existing.contains($0) }.path
        }
        #expect(folder("/usr/bin/refresh-worker", "/usr/share/doc/refresh-worker") == "/usr/share/doc/refresh-worker")
        #expect(folder("/bin/refresh-worker", "/share/doc/refresh-worker") == "/share/doc/refresh-worker")
        #expect(folder("/usr/bin/refresh-worker") == "docs")
        #expect(folder("/src/.build/debug/refresh-worker", "/src/.build/share/doc/refresh-worker") == "docs")
        let installed = DocumentFolder(path: "/usr/share/doc/refresh-worker")
        #expect(installed.located("(docs/app.md) of /srv/docs/x") == "(\(installed.path)/app.md) of /srv/docs/x")
        #expect(installed.located("\"docs/runbook.md#a\"") == "\"\(installed.path)/runbook.md#a\"")
        for path in ["docs/g.sqlite", "/srv/my docs/g.sqlite", "{\"database\":\"docs/g.sqlite\"}"] {
            #expect(installed.located(path) == path)
        }
        let parsed = try Command.program.parse(["--help"], documents: installed)
        let text = try #require(parsed.text)
        #expect(text.contains("/usr/share/doc/refresh-worker/postgres.md") && !text.contains(" docs/"))
    }

    private static func version(_ flags: String...) throws -> String {
        try #require(try Command.program.parse(["version"] + flags).text)
    }

    @Test("as JSON, the version has the same facts")
    func versionAsJSON() throws {
        let document = try #require(JSONValue.object(in: Self.version("--json").utf8))
        #expect(document["version"]?.string == Version.current)
        #expect(document["commit"]?.string == Version.commit)
        let libraries = try Self.version().split(separator: "\n").dropFirst().map {
            $0.split(separator: " ")
        }
        for library in libraries {
            #expect(document["libraries"]?[String(library[0])]?.string == String(library[1]))
        }
    }

    @Test("the version names the libraries, with numbers")
    func version() throws {
        let lines = try Self.version().split(separator: "\n")
        #expect(lines.first?.hasPrefix("refresh-worker \(Version.current)") == true)
        #expect(lines.count > 5)
        #expect(lines.contains { $0.hasPrefix("nghttp2 1.") })
        for line in lines.dropFirst() {
            #expect(line.wholeMatch(of: /[A-Za-z0-9]+ [0-9]+(\.[0-9]+)+[a-z]?/) != nil, "\(line)")
        }
    }
}
