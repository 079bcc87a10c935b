/// A server's place in the history of a database cluster.
///
/// A promotion starts a new timeline with a higher number, and the former primary keeps the lower one
/// (https://www.postgresql.org/docs/15/continuous-archiving.html#BACKUP-TIMELINES). Every copy of a cluster has the
/// same system identifier.
struct ServerIdentity: Hashable, Sendable {
    let system: String
    let timeline: Int64

    init(system: String, timeline: Int64) {
        self.system = system
        self.timeline = timeline
    }
}

extension ServerIdentity: CustomStringConvertible {
    /// The form in `meta`: both parts with a space between.
    var description: String { "\(system) \(timeline)" }

    init?(_ text: String) {
        let parts = text.split(separator: " ")
        guard parts.count == 2, let timeline = Int64(parts[1]) else { return nil }
        self.init(system: String(parts[0]), timeline: timeline)
    }
}

extension ServerIdentity {
    /// Asks a server for its identity; the first column is the process id of the session.
    ///
    /// The timeline comes from the name of the current WAL file: `pg_control_checkpoint()` shows the former timeline
    /// until the first checkpoint after a promotion. All three functions may be called by every role. A standby has no
    /// current WAL file.
    static let query = PostgresQuery(
        "server identity",
        """
        SELECT pg_backend_pid()::bigint, system_identifier::text,
            CASE WHEN NOT pg_is_in_recovery()
                THEN ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint END
        FROM pg_control_system()
        """
    )
}
