import Base
import Crypto
import Scheduler
import Storage

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
                    columns: ["Client id", "Breaker", "Pace", "Last success"],
                    rows: shown.map { client in
                        [
                            name(client.id), breaker(of: client), pace(of: client),
                            time(client.lastSuccessAt, otherwise: "none known"),
                        ]
                    }
                )
            }
        }
    }

    @HTMLBuilder private func breaker(of client: ClientStatus) -> HTML {
        label(client.breaker.name, client.breakerReason == nil ? .good : .bad)
        if let reason = client.breakerReason {
            " "
            code(reason)
        }
    }

    @HTMLBuilder private func pace(of client: ClientStatus) -> HTML {
        let ceiling = (client.ceiling * 10).rounded() / 10
        "\(ceiling.formattedShortly) a second"
        if let pause = client.pause {
            " "
            label("paused", .bad)
            " for \(pause.inTwoUnits) more"
        } else if client.isSlowed {
            " "
            label("slowed", .bad)
            " by the endpoint"
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
                    columns: ["Worker", "Refreshes", "Sealing key", "Keys"],
                    rows: shown.map { worker in
                        [
                            code(worker.id), HTML(worker.isRefreshing ? "yes" : "no"),
                            code(worker.sealingKeyID.description), HTML(Self.number(worker.keyIDs.count)),
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
        self == rounded() && magnitude < 1e15 ? StatusPage.number(Int(self)) : "\(self)"
    }
}
