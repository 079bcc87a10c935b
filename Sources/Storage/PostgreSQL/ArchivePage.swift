import Base

/// Records on their way into the database, separated by kind, since each kind has its own tables.
struct ArchivePage {
    private typealias Event = (sequence: Int64, event: GrantEvent)
    private typealias Health = (clientID: String, health: [UInt8])
    private typealias SecurityEvent = (identifier: String, at: Int64)

    private static let events: [Table<Event>.Column] = [
        .init("seq", .integer { $0.sequence }),
        .init("grant_id", .integer { $0.event.grant.rawValue }),
        .init("at", .integer { $0.event.at.milliseconds }),
        .init("kind", .text { $0.event.kind.rawValue }),
        .init("from_state", .text { $0.event.from?.rawValue }),
        .init("to_state", .text { $0.event.to.rawValue }),
        .init("reason", .text { $0.event.reason.rawValue }),
        .init("generation", .integer { $0.event.generation }),
    ]
    private static let healths: [Table<Health>.Column] = [
        .init("client_id", .text { $0.clientID }),
        .init("health", .bytes { $0.health }),
    ]
    private static let securityEvents: [Table<SecurityEvent>.Column] = [
        .init("jti", .text { $0.identifier }),
        .init("at", .integer { $0.at }),
    ]
    private static let notices: [Table<ArchivedNotice>.Column] = [
        .init("seq", .integer { $0.notice.sequence }),
        .init("nonce", .integer { Int64($0.notice.nonce) }),
        .init("user_id", .text { $0.notice.userID }),
        .init("at", .integer { $0.notice.at.milliseconds }),
        .init("kind", .text { Notice.Columns($0.notice.content).kind }),
        .init("grant_id", .integer { $0.notice.content.grant?.rawValue }),
        .init("from_state", .text { Notice.Columns($0.notice.content).from }),
        .init("to_state", .text { Notice.Columns($0.notice.content).to }),
        .init("reason", .text { Notice.Columns($0.notice.content).reason }),
        .init("lost_scopes", .text { Notice.Columns($0.notice.content).lost }),
        .init("granted_scopes", .text { Notice.Columns($0.notice.content).granted }),
        .init("session_id", .text { Notice.Columns($0.notice.content).session }),
        .init("pending_since", .integer { $0.notice.pendingSince.milliseconds }),
        .init("attempts", .integer { Int64($0.notice.attempts) }),
        .init("next_try_at", .integer { $0.nextTryAt?.milliseconds }),
        .init("accepted_at", .integer { $0.acceptedAt?.milliseconds }),
        .init("given_up_at", .integer { $0.givenUpAt?.milliseconds }),
    ]

    let records: [ArchiveRecord]

    /// Adds the statements that store the records.
    func move(to batch: inout StatementBatch) {
        add(compact { if case .user(let user) = $0 { user } else { nil } }, "users", PostgresUserRow.all, to: &batch)
        let grants = compact { if case .grant(let grant) = $0 { grant } else { nil } }
        add(grants, "grants", PostgresGrantRow.allOfGrant, to: &batch)
        add(grants, "grant_schedule", PostgresGrantRow.schedule, to: &batch)
        var counts = PendingWrites()
        for grant in grants { counts.count(grant.state, by: 1) }
        counts.move(to: &batch, notifying: false)
        add(
            compact { if case .event(let sequence, let event) = $0 { (sequence, event) } else { nil } },
            "grant_events",
            Self.events,
            to: &batch
        )
        add(
            compact { if case .session(let session) = $0 { session } else { nil } },
            "sessions",
            PostgresSessionRow.all,
            to: &batch
        )
        add(
            compact { if case .clientHealth(let id, let health) = $0 { (id, health) } else { nil } },
            "clients",
            Self.healths,
            to: &batch
        )
        add(
            compact { if case .securityEvent(let id, let at) = $0 { (id, at.milliseconds) } else { nil } },
            "security_events",
            Self.securityEvents,
            to: &batch
        )
        add(compact { if case .notice(let notice) = $0 { notice } else { nil } }, "notices", Self.notices, to: &batch)
    }

    private func compact<Element>(_ pick: (ArchiveRecord) -> Element?) -> [Element] { records.compactMap(pick) }

    private func add<Element>(
        _ elements: [Element],
        _ table: String,
        _ columns: [Table<Element>.Column],
        to batch: inout StatementBatch
    ) {
        guard !elements.isEmpty else { return }
        let query = Table<Element>.restore("restore \(table)", into: "refresh_worker.\(table)", columns)
        batch.add(query) { Table.bind(elements, columns, to: &$0) }
    }
}
