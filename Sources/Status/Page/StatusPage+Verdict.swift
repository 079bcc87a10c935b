import Base

/// The verdict in words, and its mark.
extension StatusPage {
    var verdict: Meaning {
        guard let findings else { return .neutral }
        guard let severity = findings.severity else { return .good }
        return Meaning(severity)
    }

    var heading: String { findings?.verdict ?? "State unknown" }

    /// The beginning of the page's title, which a row of tabs shows.
    var title: String {
        let count = findings?.count ?? 0
        return count > 0 ? "\(heading): \(count.grouped("concern"))" : heading
    }

    /// The shape that repeats the heading: a tick, an exclamation mark or a question mark.
    var mark: HTML {
        element("svg", ["class": "mark \(verdict.rawValue)", "viewBox": "0 0 24 24", "aria-hidden": "true"]) {
            HTML.constant(#"<circle cx="12" cy="12" r="11"/>"#)
            element("path", ["d": appearance.shape]) {}
        }
    }

    /// The same shape for the tab, as a `data:` URL.
    ///
    /// Without an icon of its own the page would make the browser ask for `/favicon.ico`.
    var icon: String {
        "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 24 24'%3E"
            + "%3Ccircle cx='12' cy='12' r='11' fill='%23\(appearance.colour)'/%3E"
            + "%3Cpath d='\(appearance.shape)' fill='none' stroke='white' stroke-width='2.5'/%3E%3C/svg%3E"
    }

    private var appearance: (shape: String, colour: String) {
        let exclamationMark = "M12 5.5v8M12 16v2.5"
        return switch verdict {
        case .good: ("M6.5 12.5l4 4 7-8", "1a7f37")
        case .bad: (exclamationMark, "b3261e")
        case .soon: (exclamationMark, "9a5b00")
        case .tomorrow: (exclamationMark, "0a50c2")
        case .neutral: ("M8.5 9a3.5 3.5 0 1 1 3.5 3.5v2M12 16.5v2.5", "5f6b7a")
        }
    }
}
