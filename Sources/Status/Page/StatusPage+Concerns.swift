import Telemetry

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
