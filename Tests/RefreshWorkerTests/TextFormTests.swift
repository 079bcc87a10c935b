import Base
import Scheduler
import Status
import Storage
import Testing

@testable import RefreshWorker

@Suite("Texts on a terminal")
struct TextFormTests {
    @Test("are folded to its width between 40 and 80 columns", arguments: [(20, 40), (40, 40), (63, 63), (200, 80)])
    func width(terminal: Int, width: Int) {
        let words = Array(repeating: "word", count: 60).joined(separator: " ")
        let lines = TextForm(terminalWidth: terminal).folded(words, after: "title      ").split(separator: "\n")
        #expect(lines.allSatisfy { $0.count <= width } && lines.contains { $0.count > width - 5 })
        #expect(lines.dropFirst().allSatisfy { $0.hasPrefix("           word") })
    }

    @Test("keep their own indentation in each line")
    func indentation() {
        let folded = TextForm(terminalWidth: 40).folded("  HTTP 503: 10 since 2027-01-15T07:58:30Z", after: "    ")
        #expect(folded == "      HTTP 503: 10 since\n      2027-01-15T07:58:30Z")
    }

    @Test("are neither folded nor coloured elsewhere")
    func pipe() {
        let words = Array(repeating: "word", count: 60).joined(separator: " ")
        #expect(TextForm().folded(words, after: "a ") == "a " + words)
        #expect(TextForm().coloured("text", by: .now) == "text")
    }

    @Test("of status have coloured verdicts, and commands on lines of their own")
    func status() {
        var snapshot = StatusSnapshot(at: Timestamp(milliseconds: 0))
        snapshot.workers = []
        snapshot.grants.idle = 1
        snapshot.grants.byState[.active] = 1
        let plain = snapshot.text
        #expect(plain.contains("\nidle       1 connected grant without a refresh for five months\n"))
        #expect(plain.contains("; docs/runbook.md#") && !plain.contains("\u{1b}"))
        let shown = snapshot.text(for: TextForm(terminalWidth: 40, isColoured: true))
        #expect(shown.contains("verdict    \u{1b}[3"))
        #expect(shown.contains("  - \u{1b}[3") && shown.contains("\u{1b}[0m: "))
        #expect(shown.contains("\n    docs/runbook.md#"))
        for line in shown.split(separator: "\n") where !line.contains("more: ") && !line.contains("runbook.md") {
            let visible = line.replacing(/\u{1b}\[[0-9]+m/, with: "")
            #expect(visible.count <= 40, "\(visible)")
        }
    }
}
