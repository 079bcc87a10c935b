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
