package import Base
package import Scheduler
package import Storage
package import Telemetry

/// The page that shows operators the state of a worker: one HTML document without external resources.
///
/// Only ``lookup`` is about users. The rest is counts, client ids, names of services and the ids of grants. It has no
/// token and no key.
///
/// Its links are relative to the folder of `/`, so that the page works behind a proxy that adds a prefix.
package struct StatusPage: Sendable {
    /// The answer to an operator who looked up a user.
    package enum Lookup: Sendable {
        /// `buttons` has the sealed text of each button.
        case found(Grant, history: [GrantEvent], buttons: [Change: String] = [:])
        case unknownUser(String)
        /// A page of the grants that fit the filter, and the `after` of the next one. Without a filter, those that fit
        /// the name that was looked up.
        ///
        /// `count` is the number of all that fit, which are then in the order of their `since`. It is `nil` if they are
        /// too many to be sorted, and then they are in the order of their ids.
        case list([Grant], filter: GrantFilter?, next: String?, count: Int?)
    }

    /// What an operator who manages grants can do with one, by the name of the operation in the audit.
    package enum Change: String, CaseIterable, Sendable {
        case retry, disconnect
    }

    package let at: Timestamp
    /// The time at which the state was as the heading says.
    package var judgedAt: Timestamp
    /// The worker that serves the page.
    let worker: String
    let version: String
    let startedAt: Timestamp
    /// `starting`, `serving`, `not ready` or `draining`.
    let phase: String
    /// `nil` if nothing was judged yet.
    package var findings: [Finding]?
    /// The last one, or `nil` if none of the last ten minutes is known.
    package var snapshot: StatusSnapshot?
    package var clients: [ClientStatus] = []
    /// The refreshes of all workers, as far as they are stored, and of this worker.
    package var activity = RecentActivity()
    /// The requests for tokens to this worker by service.
    package var services: [String: LifetimeCounts.Vends] = [:]
    /// The last changes of grants that this worker made, the newest first.
    package var changes: [GrantEvent] = []
    package var lookup: Lookup?
    /// The text that the operator looked up, as it was entered.
    package var lookedUp: String?

    package init(at: Timestamp, worker: String, version: String, startedAt: Timestamp, phase: String) {
        self.at = at
        judgedAt = at
        self.worker = worker
        self.version = version
        self.startedAt = startedAt
        self.phase = phase
    }

    package var html: String {
        let document = element("html", ["lang": "en"]) {
            element("head") { head }
            element("body") {
                header
                element("main", mainAttributes) {
                    element("div", ["id": "state"]) { verdictSection }
                    tools
                    element("div", ["id": "content"]) { content }
                }
            }
        }
        return (HTML.constant("<!DOCTYPE html>\n") + document).markup
    }

    private var head: HTML {
        HTML.joined([
            .tag("meta", ["charset": "utf-8"]),
            .tag("meta", ["name": "viewport", "content": "width=device-width, initial-scale=1"]),
            .tag("meta", ["name": "color-scheme", "content": "light dark"]),
            element("title") { "\(title) – refresh-worker" },
            .tag("link", ["rel": "icon", "href": icon]),
            element("style") { HTML.constant(Self.style) },
            element("script", ["type": "module"]) { HTML.constant(Self.script) },
        ])
    }

    private var header: HTML {
        element("header") {
            element("p", ["class": "name"]) { "refresh-worker" }
            element("p") {
                element("a", ["href": "./"]) { lookup == nil ? "Reload" : "Back to the counts" }
            }
        }
    }

    /// The part of `main` that stays while the script replaces the rest: text in the form is not lost.
    private var tools: HTML {
        element("div", ["class": "tools"]) {
            lookupForm
            element("div") {
                element("p", ["id": "zone"]) { "Times are in UTC." }
                element("p", ["id": "updates", "role": "status"]) {
                    if lookup != nil { "While this page shows users, it does not update itself." }
                }
            }
        }
    }

    private var mainAttributes: KeyValuePairs<StaticString, String> {
        lookup == nil ? ["data-at": at.iso8601Seconds] : [:]
    }

    @HTMLBuilder private var content: HTML {
        if let lookup { lookupSection(lookup) }
        // With the rest, a list or a user and its history would make the page too large.
        if case .list = lookup {
            HTML.empty
        } else {
            concernsSection
            if lookup == nil { countSections }
        }
    }

    /// While nothing is sent for a client, its state explains the concerns, so it follows them.
    @HTMLBuilder private var countSections: HTML {
        let hasStoppedClient = clients.contains { $0.breakerReason != nil }
        if hasStoppedClient { clientsSection }
        activitySection
        element("div", ["class": "columns"]) {
            grantsSection
            element("div") {
                noticesSection
                servicesSection
                workersSection
            }
        }
        if !hasStoppedClient { clientsSection }
        changesSection
    }
}
