import Status
import Telemetry
import Testing

@testable import Status

@Suite("The runbook in the program")
struct RunbookTests {
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
}
