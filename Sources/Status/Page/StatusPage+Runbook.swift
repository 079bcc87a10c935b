/// The sections of the runbook that the concerns name.
extension StatusPage {
    /// A link to the section on this page.
    func runbookLink(_ concern: Concern) -> HTML {
        element("a", ["href": "#runbook-\(concern.kind)"]) { "Runbook: \(concern.kind)" }
    }

    @HTMLBuilder var runbookSection: HTML {
        let kinds = shownConcerns.reduce(into: [String]()) { if !$0.contains($1.kind) { $0.append($1.kind) } }
        if !kinds.isEmpty {
            section("Runbook", id: "runbook") {
                for kind in kinds { entry(kind) }
            }
        }
    }

    @HTMLBuilder private func entry(_ kind: String) -> HTML {
        let section = Runbook.shared.sections[kind] ?? Runbook.Section()
        element("h3", ["id": "runbook-\(kind)"]) { kind }
        element("p") { MarkdownText(section.introduction).html }
        element("ul") {
            for item in section.items { element("li") { MarkdownText(item).html } }
        }
    }
}
