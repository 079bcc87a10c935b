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
                label(phase, phaseMeaning)
                " Worker "
                code(worker)
                ", version \(Self.shortened(version, limit: Self.nameLimit)), started "
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
        return findings.isEmpty ? "No concern." : "\(Self.count(findings.count, "concern"))."
    }

    /// The findings that are shown: the most urgent ones.
    var shownFindings: ArraySlice<Finding> { (findings ?? []).prefix(Self.rowLimit) }

    @HTMLBuilder var concernsSection: HTML {
        let findings = shownFindings
        if !findings.isEmpty {
            section("Concerns", id: "concerns") {
                element("ul", ["class": "concerns"]) {
                    for finding in findings { element("li") { item(finding) } }
                }
                more(than: findings.count)
            }
        }
    }

    @HTMLBuilder private func more(than shown: Int) -> HTML {
        let all = findings?.count ?? 0
        if all > shown {
            element("p") {
                "\(Self.number(all - shown)) more are not shown: "
                code("refresh-worker status")
            }
        }
    }

    @HTMLBuilder private func item(_ finding: Finding) -> HTML {
        element("p") {
            label(finding.severity.rawValue, Meaning(finding.severity))
            " "
            element("bdi") { Self.shortened(finding.text, limit: Self.sentenceLimit) }
        }
        element("p", ["class": "facts"]) {
            if let since = finding.since {
                "Since "
                time(since)
                ". "
            }
            "More: "
            code(finding.command)
            ". "
            runbookLink(finding)
        }
    }

    private static let sentenceLimit = 250
}

/// The sections of docs/runbook.md, which is part of the program: an introduction, and a list of what to look at, what
/// to do and what not to do.
///
/// A browser on the internal listener cannot open the file: it is on the worker's machine or in the source. So the page
/// shows the sections that its findings name.
struct RunbookSection: Equatable, Sendable {
    static let all = parse(String(decoding: PackageResources.runbook_md, as: UTF8.self))

    var introduction = ""
    var items: [String] = []

    /// Reads the headings of the third level, with the paragraphs and the list items below them.
    static func parse(_ markdown: String) -> [String: RunbookSection] {
        var sections: [String: RunbookSection] = [:]
        var kind: String?
        for line in markdown.split(separator: "\n") {
            if line.hasPrefix("#") {
                kind = line.hasPrefix("### ") ? String(line.dropFirst(4)) : nil
            } else if let kind {
                sections[kind, default: RunbookSection()].append(line)
            }
        }
        return sections
    }

    private mutating func append(_ line: Substring) {
        if line.hasPrefix("- ") {
            items.append(String(line.dropFirst(2)))
        } else if items.isEmpty {
            introduction += (introduction.isEmpty ? "" : " ") + line
        } else {
            items[items.count - 1] += " " + line.drop { $0 == " " }
        }
    }
}

/// The sections of the runbook that the findings name.
extension StatusPage {
    /// A link to the section on this page.
    func runbookLink(_ finding: Finding) -> HTML {
        element("a", ["href": "#runbook-\(finding.kind)"]) { "Runbook: \(finding.kind)" }
    }

    @HTMLBuilder var runbookSection: HTML {
        let kinds = shownFindings.reduce(into: [String]()) { if !$0.contains($1.kind) { $0.append($1.kind) } }
        if !kinds.isEmpty {
            section("Runbook", id: "runbook") {
                for kind in kinds { entry(kind) }
            }
        }
    }

    @HTMLBuilder private func entry(_ kind: String) -> HTML {
        let section = RunbookSection.all[kind] ?? RunbookSection()
        element("h3", ["id": "runbook-\(kind)"]) { kind }
        element("p") { HTML(markdown: section.introduction) }
        element("ul") {
            for item in section.items { element("li") { HTML(markdown: item) } }
        }
    }
}
