import Status
import Telemetry
import Testing

@testable import Status

@Suite("The runbook in the program")
struct RunbookTests {
    @Test("has a complete section for each kind of finding")
    func complete() {
        for kind in Finding.Kind.allCases.map(\.rawValue) + AlarmKind.allCases.map(\.rawValue) {
            let section = RunbookSection.all[kind]
            #expect(section?.introduction.isEmpty == false, "\(kind)")
            #expect(section?.items.count == 3, "\(kind)")
        }
    }

    @Test("is a page, with an anchor for each kind of finding")
    func page() {
        let markup = Markup(StatusPage.runbook)
        let ids = markup.values(of: "id")
        let kinds = Finding.Kind.allCases.map(\.rawValue) + AlarmKind.allCases.map(\.rawValue)
        #expect(Set(kinds + ["worker_restarts", "exit-codes"]).isSubset(of: ids))
        #expect(Set(ids).count == ids.count && markup.unbalanced.isEmpty)
        let section = HTML(document: "## A b\n- **Do:** it\n  now.\n\n       run <x>\n    again\nText\n| c |\n")
        #expect(
            section.markup == """
                <h2 id="a-b">A b</h2><p>- <strong>Do:</strong> it now.</p><pre>       run &lt;x&gt;
                    again
                </pre><p>Text</p><pre>| c |
                </pre>
                """
        )
    }

    @Test("is read section by section")
    func reading() {
        let text =
            "# A\nb\n## C\n### one\nIts\nintroduction.\n- **Look:** here\n  and there.\n- **Do:** it.\n\n## D\n| e |\n### two\nf\n"
        let one = RunbookSection(
            introduction: "Its introduction.",
            items: ["**Look:** here and there.", "**Do:** it."]
        )
        #expect(RunbookSection.parse(text) == ["one": one, "two": RunbookSection(introduction: "f")])
    }
}
