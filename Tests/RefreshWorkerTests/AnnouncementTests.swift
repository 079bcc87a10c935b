import Testing

@testable import RefreshWorker

@Suite("The line that says as whom a command runs")
struct AnnouncementTests {
    @Test(
        "comes first on a terminal only for the worker, and for a command that names a file",
        arguments: [
            ([], true), (["--run-once"], true), (["status"], false), (["grants", "list"], false),
            (["users", "show", "alice"], false), (["grants", "add", "alice"], false),
            (["grants", "add", "alice", "--token-file", "t"], true), (["grants", "import", "grants.jsonl"], true),
            (["backup", "copy.sqlite"], true),
        ]
    )
    func onTerminal(words: [String], isNeeded: Bool) throws {
        let arguments = try Command.program.parse(words)
        #expect(arguments.needsAnnouncement(onTerminal: true) == isNeeded)
        #expect(arguments.needsAnnouncement(onTerminal: false), "a log has it")
    }

    @Test("the completions of a shell have a command of their own", arguments: ["bash", "zsh", "fish"])
    func completions(shell: String) throws {
        let completions = try Command.program.parse(["completion", shell]).text
        let former = try Command.program.parse(["help", "--format", shell]).text
        #expect(completions != nil && completions == former)
    }
}
