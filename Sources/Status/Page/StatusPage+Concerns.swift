/// The verdict and the concerns.
extension StatusPage {
    var verdict: PageVerdict { PageVerdict(contents.judgement) }

    var verdictSection: HTML {
        element("div", ["class": "verdict"]) {
            verdict.mark
            element("h1") { verdict.heading }
            element("p") {
                verdictSentence
                " As of "
                time(contents.at)
                if let observedAt = contents.countedAt {
                    "; the database was read at "
                    time(observedAt)
                }
                "."
            }
            element("p", ["class": "facts"]) {
                label(contents.phase, phaseMeaning)
                " Worker "
                code(contents.worker)
                ", version \(Self.shortened(contents.version, limit: Self.nameLimit)), started "
                time(contents.startedAt)
                "."
            }
        }
    }

    private var phaseMeaning: Meaning {
        switch contents.phase {
        case "serving": .good
        case "not ready": .bad
        default: .neutral
        }
    }

    private var verdictSentence: String {
        guard let judgement = contents.judgement else { return "This worker has not judged its state yet." }
        let notes = judgement.concerns.count { $0.isAdvisory }
        let concerns = judgement.concerns.count - notes
        let parts = [
            concerns > 0 ? Self.count(concerns, "concern") : "No concern",
            notes > 0 ? Self.count(notes, "note") : nil,
        ]
        return parts.compactMap(\.self).joined(separator: " and ") + "."
    }

    /// The concerns that are shown: those that change the verdict first.
    var shownConcerns: ArraySlice<Concern> {
        let concerns = contents.judgement?.concerns ?? []
        return (concerns.filter { !$0.isAdvisory } + concerns.filter(\.isAdvisory)).prefix(Self.rowLimit)
    }

    @HTMLBuilder var concernsSection: HTML {
        let concerns = shownConcerns
        if !concerns.isEmpty {
            section("Concerns", id: "concerns") {
                element("ul", ["class": "concerns"]) {
                    for concern in concerns { element("li") { item(concern) } }
                }
                more(than: concerns.count)
            }
        }
    }

    @HTMLBuilder private func more(than shown: Int) -> HTML {
        let all = contents.judgement?.concerns.count ?? 0
        if all > shown {
            element("p") {
                "\(Self.number(all - shown)) more are not shown: "
                code("refresh-worker status")
            }
        }
    }

    @HTMLBuilder private func item(_ concern: Concern) -> HTML {
        element("p") {
            label(concern.isAdvisory ? "note" : "attention", concern.isAdvisory ? .neutral : .bad)
            " "
            element("bdi") { Self.shortened(concern.text, limit: Self.sentenceLimit) }
        }
        element("p", ["class": "facts"]) {
            if let since = concern.since {
                "Since "
                time(since)
                ". "
            }
            "More: "
            code(concern.command)
            ". "
            runbookLink(concern)
        }
    }

    private static let sentenceLimit = 250
}

/// The sections of docs/runbook.md, which is part of the program.
///
/// A browser on the internal listener cannot open the file: it is on the worker's machine or in the source. So the page
/// shows the sections that its concerns name.
struct Runbook: Sendable {
    /// A section: an introduction, and a list of what to look at, what to do and what not to do.
    struct Section: Equatable, Sendable {
        var introduction = ""
        var items: [String] = []
    }

    static let shared = Runbook(String(decoding: PackageResources.runbook_md, as: UTF8.self))

    let sections: [String: Section]

    /// Reads the headings of the third level, with the paragraphs and the list items below them.
    init(_ markdown: String) {
        var sections: [String: Section] = [:]
        var kind: String?
        for line in markdown.split(separator: "\n") {
            if line.hasPrefix("#") {
                kind = line.hasPrefix("### ") ? String(line.dropFirst(4)) : nil
            } else if let kind {
                sections[kind, default: Section()].append(line)
            }
        }
        self.sections = sections
    }
}

extension Runbook.Section {
    fileprivate mutating func append(_ line: Substring) {
        if line.hasPrefix("- ") {
            items.append(String(line.dropFirst(2)))
        } else if items.isEmpty {
            introduction += (introduction.isEmpty ? "" : " ") + line
        } else {
            items[items.count - 1] += " " + line.drop { $0 == " " }
        }
    }
}

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
