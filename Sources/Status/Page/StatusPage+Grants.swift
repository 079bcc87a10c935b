import Storage

/// The grants by state, and the notices.
extension StatusPage {
    var grantsSection: HTML {
        section("Grants", id: "grants") {
            if let grants = snapshot?.grants {
                table(
                    "\(Self.count(grants.grants, "grant")) in all, \(Self.number(grants.connected)) connected.",
                    className: "compact",
                    columns: ["State", "Grants", "Meaning"],
                    rows: GrantState.allCases.map { state in
                        [
                            code(state.rawValue),
                            element("span", ["class": "number"]) { Self.number(grants.byState[state] ?? 0) },
                            HTML(state.meaning),
                        ]
                    }
                )
                facts(of: grants)
            } else {
                unknown("The database cannot be asked.")
            }
        }
    }

    private func facts(of grants: GrantStatistics) -> HTML {
        element("ul", ["class": "facts"]) {
            if let countedAt = snapshot?.at {
                element("li") {
                    "Counted "
                    time(countedAt)
                }
            }
            element("li") {
                "\(Self.number(grants.due)) due now"
                if let oldest = grants.oldestDueAt {
                    ", the oldest since "
                    time(oldest)
                }
            }
            element("li") {
                "\(Self.number(grants.expired.count)) connected without a valid access token"
                if let oldest = grants.expired.oldest {
                    ", the oldest since "
                    time(oldest)
                }
            }
            element("li") { "\(Self.number(grants.refreshTokensEnding)) whose refresh token ends within three days" }
            element("li") { "\(Self.number(grants.idle)) without a refresh for five months" }
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
        case ..<PendingNotices.limit: "The notices of \(number(notices.count)) users wait for delivery"
        default: "The notices of \(number(notices.count)) or more users wait for delivery"
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
