import Base
import Crypto
import Storage

/// The client ids and the workers.
extension StatusPage {
    @HTMLBuilder var clientsSection: HTML {
        let all = [2, 1, 0].flatMap { urgency in contents.clients.filter { $0.urgency == urgency } }
        let shown = all.prefix(Self.rowLimit)
        section("Clients", id: "clients") {
            if shown.isEmpty {
                element("p") { "No client id is configured, and none has been used yet." }
            } else {
                PageTable(
                    "Client ids, with the limits that all workers share. "
                        + PageTable.extent(shown: shown.count, of: all.count, "client id"),
                    columns: ["Client id", "Breaker", "Pace", "Last success"],
                    rows: shown.map { client in
                        [
                            name(client.id), breaker(of: client), pace(of: client),
                            time(client.lastSuccessAt, otherwise: "none known"),
                        ]
                    }
                ).html
            }
        }
    }

    @HTMLBuilder private func breaker(of client: StatusPageContents.Client) -> HTML {
        label(client.breaker, client.breaker == "closed" ? .good : .bad)
        if let reason = client.breakerReason {
            " "
            code(reason)
        }
    }

    @HTMLBuilder private func pace(of client: StatusPageContents.Client) -> HTML {
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
            if let workers = contents.workers, workers.isEmpty {
                element("p") { "No worker reported in the last 30 seconds." }
            } else if let workers = contents.workers {
                let shown = workers.prefix(Self.rowLimit)
                PageTable(
                    "Workers that reported in the last 30 seconds. "
                        + PageTable.extent(shown: shown.count, of: workers.count, "worker"),
                    columns: ["Worker", "Refreshes", "Sealing key", "Keys"],
                    rows: shown.map { worker in
                        [
                            code(worker.id), HTML(worker.isRefreshing ? "yes" : "no"),
                            code(worker.sealingKeyID.description), HTML(Self.number(worker.keyIDs.count)),
                        ]
                    }
                ).html
            } else {
                unknown("The database cannot be asked.")
            }
        }
    }
}

extension StatusPageContents.Client {
    /// A client that something is wrong with is shown before the others.
    fileprivate var urgency: Int {
        if breaker != "closed" { return 2 }
        return pause != nil || isSlowed ? 1 : 0
    }
}

extension Double {
    /// The number without the fraction of a whole one.
    fileprivate var formattedShortly: String {
        self == rounded() && magnitude < 1e15 ? StatusPage.number(Int(self)) : "\(self)"
    }
}
