import Base

/// The verdict and the findings, which the page calls concerns.
extension StatusPage {
    var verdictSection: HTML {
        element("div", ["class": "verdict"]) {
            mark
            element("h1") { heading }
            element("p") {
                verdictSentence
                " As of "
                time(judgedAt)
                if let observedAt = snapshot?.at, observedAt != judgedAt {
                    "; the database was last read "
                    time(observedAt)
                }
                "."
            }
            element("p", ["class": "facts"]) {
                label(phase, meaning: phaseMeaning)
                " Worker "
                code(worker)
                ", version \(version.shortened(to: Self.nameLimit)), started "
                time(startedAt)
                "."
            }
        }
    }

    private var phaseMeaning: Meaning {
        switch phase {
        case "serving": .good
        case "not ready": .bad
        default: .neutral
        }
    }

    private var verdictSentence: String {
        guard let findings else { return "This worker has not judged its state yet." }
        return findings.isEmpty ? "No concern." : "\(findings.count.grouped("concern"))."
    }

    @HTMLBuilder var concernsSection: HTML {
        // The most urgent ones.
        let findings = (findings ?? []).prefix(Self.rowLimit)
        if !findings.isEmpty {
            section("Concerns", id: "concerns") {
                element("ul", ["class": "concerns"]) {
                    for finding in findings {
                        element("li", finding.cause == nil ? [:] : ["class": "effect"]) { item(finding) }
                    }
                }
                more(than: findings.count)
            }
        }
    }

    @HTMLBuilder private func more(than shown: Int) -> HTML {
        let all = findings?.count ?? 0
        if all > shown {
            element("p") {
                "\((all - shown).grouped) more are not shown: "
                code("refresh-worker status")
            }
        }
    }

    @HTMLBuilder private func item(_ finding: Finding) -> HTML {
        element("p") {
            label(finding.severity.urgency, meaning: Meaning(finding.severity))
            " "
            element("bdi") { finding.text.shortened(to: Self.sentenceLimit) }
        }
        element("p", ["class": "facts"]) {
            if let cause = finding.cause { "It follows from \(cause). " }
            if let since = finding.since {
                "Since "
                time(since)
                ". "
            }
            "More: "
            code(finding.command)
            ". "
            element("a", ["href": "runbook#\(finding.kind)"]) { "Runbook: \(finding.kind)" }
        }
    }

    static let sentenceLimit = 250
}
