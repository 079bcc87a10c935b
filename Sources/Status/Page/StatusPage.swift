import Telemetry

/// The page that shows operators the state of a worker: one HTML document without external resources.
///
/// Its links are relative to the folder of `/`, so that the page works behind a proxy that adds a prefix.
package struct StatusPage: Sendable {
    let contents: StatusPageContents

    package init(_ contents: StatusPageContents) {
        self.contents = contents
    }

    package var html: String {
        let document = element("html", ["lang": "en"]) {
            element("head") { head }
            element("body") {
                header
                element("main", mainAttributes) { main }
            }
        }
        return (HTML.constant("<!DOCTYPE html>\n") + document).markup
    }

    private var head: HTML {
        HTML.joined([
            .tag("meta", ["charset": "utf-8"]),
            .tag("meta", ["name": "viewport", "content": "width=device-width, initial-scale=1"]),
            .tag("meta", ["name": "color-scheme", "content": "light dark"]),
            element("title") { "\(verdict.title) – refresh-worker" },
            .tag("link", ["rel": "icon", "href": verdict.icon]),
            element("style") { PageStyle.html },
            element("script", ["type": "module"]) { PageScript.html },
        ])
    }

    /// The part of the page that stays while the script replaces the rest: text in the form is not lost.
    private var header: HTML {
        element("header") {
            element("div", ["class": "bar"]) {
                element("p", ["class": "name"]) { "refresh-worker" }
                element("p") {
                    element("a", ["href": "./"]) { contents.lookup == nil ? "Reload" : "Back to the counts" }
                }
                lookupForm
            }
            element("p", ["id": "updates", "role": "status"]) {
                if contents.lookup != nil { "While this page shows a user, it does not update itself." }
            }
        }
    }

    private var mainAttributes: KeyValuePairs<StaticString, String> {
        contents.lookup == nil ? ["data-at": contents.at.iso8601Seconds] : [:]
    }

    @HTMLBuilder private var main: HTML {
        verdictSection
        if let lookup = contents.lookup { lookupSection(lookup) }
        concernsSection
        // With a user and its history, the counts would make the page too large.
        if contents.lookup == nil { countSections }
        runbookSection
    }

    @HTMLBuilder private var countSections: HTML {
        activitySection
        element("div", ["class": "columns"]) {
            grantsSection
            element("div") {
                noticesSection
                workersSection
            }
        }
        clientsSection
        changesSection
    }
}

/// The verdict in words, and its mark.
enum PageVerdict {
    case well
    case attention(concerns: Int)
    case unknown

    init(_ judgement: Judgement?) {
        guard let judgement else {
            self = .unknown
            return
        }
        self = judgement.isWell ? .well : .attention(concerns: judgement.concerns.count { !$0.isAdvisory })
    }

    var heading: String {
        switch self {
        case .well: "All is well"
        case .attention: "Needs attention"
        case .unknown: "State unknown"
        }
    }

    /// The beginning of the page's title, which a row of tabs shows.
    var title: String {
        switch self {
        case .attention(let concerns): "\(heading): \(StatusPage.count(concerns, "concern"))"
        case .well, .unknown: heading
        }
    }

    var className: String {
        switch self {
        case .well: "good"
        case .attention: "bad"
        case .unknown: "neutral"
        }
    }

    /// The shape that repeats the heading: a tick, an exclamation mark or a question mark.
    var mark: HTML {
        element("svg", ["class": "mark \(className)", "viewBox": "0 0 24 24", "aria-hidden": "true"]) {
            HTML.constant(#"<circle cx="12" cy="12" r="11"/>"#)
            element("path", ["d": Self.shape(of: self)]) {}
        }
    }

    /// The same shape for the tab, as a `data:` URL.
    ///
    /// Without an icon of its own the page would make the browser ask for `/favicon.ico`.
    var icon: String {
        let colour =
            switch self {
            case .well: "1a7f37"
            case .attention: "b3261e"
            case .unknown: "5f6b7a"
            }
        return "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 24 24'%3E"
            + "%3Ccircle cx='12' cy='12' r='11' fill='%23\(colour)'/%3E"
            + "%3Cpath d='\(Self.shape(of: self))' fill='none' stroke='white' stroke-width='2.5'/%3E%3C/svg%3E"
    }

    private static func shape(of verdict: PageVerdict) -> String {
        switch verdict {
        case .well: "M6.5 12.5l4 4 7-8"
        case .attention: "M12 5.5v8M12 16v2.5"
        case .unknown: "M8.5 9a3.5 3.5 0 1 1 3.5 3.5v2M12 16.5v2.5"
        }
    }
}
