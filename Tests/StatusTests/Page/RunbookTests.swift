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
