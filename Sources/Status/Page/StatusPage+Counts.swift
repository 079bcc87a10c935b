import Base
import Crypto
import Scheduler
import Storage
import Telemetry

/// The grants by state, and the notices.
extension StatusPage {
    var grantsSection: HTML {
        section("Grants", id: "grants") {
            if let grants = snapshot?.countedGrants {
                table(
                    "\(grants.grants.grouped("grant")) in all, \(grants.connected.grouped) connected.",
                    className: "compact",
                    columns: ["State", .number("Grants"), "Meaning"],
                    rows: GrantState.allCases.map { state in
                        [
                            link(state: state), HTML((grants.byState[state] ?? 0).grouped), HTML(state.meaning),
                        ]
                    }
                        + otherRows(of: grants)
                )
                facts(of: grants)
            } else if snapshot != nil {
                unknown("The database did not count them in time.")
            } else {
                unknown("The database cannot be asked.")
            }
        }
    }

    /// The grants that a person should know of, whatever their state.
    private func otherRows(of grants: GrantStatistics) -> [[HTML]] {
        let expired = element("a", ["href": "grants?expired=true"]) { "expired" }
        return [
            [
                HTML("due"), HTML(grants.due.grouped),
                sentence("To be refreshed now", since: grants.oldestDueAt),
            ],
            [
                expired, HTML(grants.expired.count.grouped),
                sentence("Connected without a valid access token", since: grants.expired.oldest),
            ],
            [HTML("ending"), HTML(grants.refreshTokensEnding.grouped), HTML("The refresh token ends in three days.")],
            [HTML("idle"), HTML(grants.idle.grouped), HTML("Not refreshed for five months.")],
        ]
    }

    @HTMLBuilder private func sentence(_ text: String, since oldest: Timestamp?) -> HTML {
        text
        if let oldest {
            ", the oldest since "
            time(oldest)
        }
        "."
    }

    @HTMLBuilder private func facts(of grants: GrantStatistics) -> HTML {
        if !grants.retryingReasons.isEmpty { element("p", ["class": "facts"]) { reasons(of: grants) } }
        if let countedAt = snapshot?.at {
            element("p", ["class": "facts"]) {
                "Counted "
                time(countedAt)
                "."
            }
        }
    }

    /// The retrying grants by reason: Google's codes, and the kinds of faults.
    @HTMLBuilder private func reasons(of grants: GrantStatistics) -> HTML {
        "Retrying: "
        let shown = grants.retryingByReason.prefix(Self.rowLimit)
        for (index, (reason, count)) in shown.enumerated() {
            "\(index == 0 ? "" : ", ")\(count.grouped) "
            code(reason.rawValue)
        }
    }

    var noticesSection: HTML {
        section("Waiting notices", id: "notices") {
            if let notices = snapshot?.notices {
                element("p") {
                    Self.text(of: notices)
                    if let oldest = notices.oldest {
                        ", the oldest since "
                        time(oldest)
                    }
                    "."
                }
            } else if snapshot == nil {
                unknown("The database cannot be asked.")
            } else {
                element("p") { "This worker does not notify a backend." }
            }
        }
    }

    private static func text(of notices: PendingNotices) -> String {
        switch notices.count {
        case 0: "No notice waits for delivery"
        case 1: "The notices of 1 user wait for delivery"
        case ..<PendingNotices.limit: "The notices of \(notices.count.grouped) users wait for delivery"
        default: "The notices of \(notices.count.grouped) or more users wait for delivery"
        }
    }
}

extension GrantState {
    /// The state in a few words.
    var meaning: String {
        switch self {
        case .active: "The last refresh succeeded."
        case .retrying: "The last refresh failed; it is tried again."
        case .suspended: "An administrator or a policy blocks it; tried once a day."
        case .reauthRequired: "The user must sign in again."
        case .disconnected: "Ended by Google or by the user."
        }
    }
}

/// The client ids and the workers.
extension StatusPage {
    @HTMLBuilder var clientsSection: HTML {
        let all = [2, 1, 0].flatMap { urgency in clients.filter { $0.urgency == urgency } }
        let shown = all.prefix(Self.rowLimit)
        section("Clients", id: "clients") {
            if shown.isEmpty {
                element("p") { "No client id is configured, and none has been used yet." }
            } else {
                table(
                    "Client ids, with the limits that all workers share. "
                        + Self.extent(shown: shown.count, of: all.count, "client id"),
                    columns: ["Client id", "Breaker", "Pace", "Last failure", "Last success"],
                    rows: shown.map { client in
                        [
                            name(client.id), breaker(of: client), pace(of: client), failure(of: client),
                            time(client.lastSuccessAt, otherwise: "none known"),
                        ]
                    }
                )
            }
        }
    }

    @HTMLBuilder private func breaker(of client: ClientStatus) -> HTML {
        label(client.breaker.name, meaning: client.breakerReason == nil ? .good : .bad)
        if let reason = client.breakerReason {
            " "
            code(reason)
        }
        if let next = client.nextProbe { ", next probe in \(next.inTwoUnits)" }
    }

    /// What the endpoint answered last instead of a token.
    @HTMLBuilder private func failure(of client: ClientStatus) -> HTML {
        if let failure = client.failures.first {
            code(failure.name)
            ", \(failure.count.grouped) since "
            time(failure.since)
            ", the last "
            failure.lastAt.distanceInTwoUnits(from: at)
        } else {
            "none in the last day"
        }
    }

    @HTMLBuilder private func pace(of client: ClientStatus) -> HTML {
        let ceiling = (client.ceiling * 10).rounded() / 10
        "\(ceiling.formattedShortly) a second"
        if let pause = client.pause {
            " "
            label("paused", meaning: .bad)
            " for \(pause.inTwoUnits) more"
        } else if client.isSlowed {
            " "
            label("slowed", meaning: .bad)
            " by the endpoint"
        }
    }

    /// The services that get tokens from this worker.
    @HTMLBuilder var servicesSection: HTML {
        let busiest = services.sorted { ($1.value.duration.count, $0.key) < ($0.value.duration.count, $1.key) }
        let shown = busiest.prefix(Self.rowLimit)
        section("Services", id: "services") {
            if shown.isEmpty {
                element("p") { "No service has asked this worker for a token since it started." }
            } else {
                table(
                    "Tokens of this worker since it started, and the time that half and 95 % of the answers took at "
                        + "most. " + Self.extent(shown: shown.count, of: busiest.count, "service"),
                    columns: ["Service", .number("Tokens"), .number("Errors"), .number("Half"), .number("95 %")],
                    rows: shown.map { name, vends in
                        [code(name), HTML(vends.tokens.grouped), HTML(vends.errors.grouped)]
                            + [0.5, 0.95].map { share in
                                HTML(vends.duration.bound(of: share).map(\.inFineUnits) ?? "over 30 s")
                            }
                    }
                )
            }
        }
    }

    var workersSection: HTML {
        section("Workers", id: "workers") {
            if let workers = snapshot?.workers, workers.isEmpty {
                element("p") { "No worker reported in the last 30 seconds." }
            } else if let workers = snapshot?.workers {
                let shown = workers.prefix(Self.rowLimit)
                table(
                    "Workers that reported in the last 30 seconds. "
                        + Self.extent(shown: shown.count, of: workers.count, "worker"),
                    columns: ["Worker", "Refreshes", "Sealing key", .number("Keys")],
                    rows: shown.map { worker in
                        [
                            code(worker.id), HTML(worker.isRefreshing ? "yes" : "no"),
                            code(worker.sealingKeyID.description), HTML(worker.keyIDs.count.grouped),
                        ]
                    }
                )
            } else {
                unknown("The database cannot be asked.")
            }
        }
    }
}

extension ClientStatus {
    /// A client that something is wrong with is shown before the others.
    fileprivate var urgency: Int {
        if breakerReason != nil { return 2 }
        return pause != nil || isSlowed ? 1 : 0
    }
}

extension Double {
    /// The number without the fraction of a whole one.
    fileprivate var formattedShortly: String {
        self == rounded() && magnitude < 1e15 ? Int(self).grouped : "\(self)"
    }
}
