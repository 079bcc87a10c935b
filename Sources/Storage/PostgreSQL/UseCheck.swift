extension SQLQuery {
    /// Fails, before anything is written, in a database that must not be used any more, and otherwise returns the
    /// server's timeline.
    ///
    /// The function is part of the schema (``SchemaStep/useCheck``). `$4` is the system identifier, checked only behind
    /// a pooler: that can use a session of another server for each transaction.
    static let checkUse = SQLQuery("use check", sql: "SELECT refresh_worker.check_use($1, $2, $3, $4)")
}

extension SchemaStep {
    /// The function that every claim and every transaction calls first.
    ///
    /// The shared lock makes a claim and the note of a move exclude each other: a claim that saw no note is committed
    /// before the note is. Without it a claim could begin before the note and end after it.
    static let useCheck = """
        INSERT INTO refresh_worker.meta (key, value) VALUES ('store_id', gen_random_uuid()::text) ON CONFLICT DO NOTHING;
        CREATE FUNCTION refresh_worker.check_use(move_lock bigint, expected_store text, newest_timeline bigint, system text)
        RETURNS bigint LANGUAGE plpgsql AS $$
        DECLARE
            moved text;
            store text;
            timeline bigint;
        BEGIN
            PERFORM pg_advisory_xact_lock_shared(move_lock);
            SELECT max(value) FILTER (WHERE key = 'moved_to'), max(value) FILTER (WHERE key = 'store_id') INTO moved, store
            FROM refresh_worker.meta WHERE key IN ('moved_to', 'store_id');
            IF moved IS NOT NULL THEN
                RAISE EXCEPTION USING ERRCODE = '\(StoreError.movedState)', MESSAGE = moved;
            END IF;
            IF store IS DISTINCT FROM expected_store AND expected_store IS NOT NULL THEN
                RAISE EXCEPTION USING ERRCODE = '\(StoreError.otherTablesState)', MESSAGE = 'the tables are not those of before';
            END IF;
            -- A server that does not identify itself, or a standby, which refuses writes itself.
            IF newest_timeline IS NULL OR pg_is_in_recovery() THEN
                RETURN NULL;
            END IF;
            timeline := ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint;
            IF timeline < newest_timeline THEN
                RAISE EXCEPTION USING ERRCODE = '\(StoreError.outdatedState)',
                    MESSAGE = 'timeline ' || timeline || ' is older than ' || newest_timeline;
            END IF;
            IF system IS NOT NULL AND system <> (SELECT system_identifier::text FROM pg_control_system()) THEN
                RAISE EXCEPTION USING ERRCODE = '\(StoreError.outdatedState)', MESSAGE = 'another database cluster';
            END IF;
            RETURN timeline;
        END $$;
        """
}

/// The SQLSTATE codes of ``SQLQuery/checkUse``, in a class that PostgreSQL leaves to programs.
extension StoreError {
    static let movedState = "RW001"
    static let outdatedState = "RW002"
    static let otherTablesState = "RW003"
}

extension StatementBatch {
    /// Begins a transaction whose statements the server ends before the deadline, so that the connection stays usable.
    ///
    /// The worker waits for the server's response beyond the deadline (``CallDeadline/grace``). It sends no cancel
    /// request instead: one that arrives during a COMMIT ends the wait for a synchronous standby, and the commit would
    /// be reported although the standby lacks it
    /// (https://www.postgresql.org/docs/15/warm-standby.html#SYNCHRONOUS-REPLICATION). The server stops its own timer
    /// before that wait.
    init(until deadline: CallDeadline) {
        self.init(.begin)
        addLimits(until: deadline)
    }

    mutating func addLimits(until deadline: CallDeadline) {
        add(.limits, .text(deadline.serverLimit), .text(deadline.serverIdleLimit))
    }

    /// Creates a limited batch for a query that changes nothing.
    init(queryUntil deadline: CallDeadline, endingAfter limit: Duration? = nil) {
        self.init(.queryLimit, .text(deadline.serverLimit(atMost: limit)))
    }

    var useCheckPosition: Int? { entries.firstIndex { $0.query.preparedName == SQLQuery.checkUse.preparedName } }
}

extension PostgresStore {
    /// Returns a batch for a change: limited by the deadline, and ended by the server if the database must not be used.
    func changes(until deadline: CallDeadline, on connection: PostgresConnection) -> StatementBatch {
        var batch = StatementBatch(until: deadline)
        addUseCheck(to: &batch, on: connection)
        return batch
    }

    func addUseCheck(to batch: inout StatementBatch, on connection: PostgresConnection) {
        let newest = connection.identity == nil ? nil : newestServer.newest
        batch.add(
            .checkUse,
            .integer(connection.database.schema.moveLock),
            .text(newestServer.storeID),
            .integer(newest?.timeline),
            .text(connection.isPooled ? newest?.system : nil)
        )
    }

    /// Records the timeline that the use check returned: a standby's session survives its promotion, and a pooler can
    /// switch to another server.
    func recordTimeline(from results: [StatementResult], of batch: StatementBatch, on connection: PostgresConnection)
        throws(StoreError)
    {
        guard let position = batch.useCheckPosition else { return }
        newestServer.recordFoundTables()
        let timeline = try results[position].first { $0.optionalInteger() }
        guard let timeline = timeline ?? nil, let newest = newestServer.newest, timeline > newest.timeline else {
            return
        }
        _ = newestServer.record(ServerIdentity(system: newest.system, timeline: timeline), at: connection.database)
    }

    /// Handles a failed use check, and returns the failure for the caller.
    func handle(_ failure: StoreError, on connection: PostgresConnection) -> StoreError {
        switch failure.sqlState {
        case StoreError.outdatedState: return failure.losingConnection
        case StoreError.otherTablesState, "3F000", "42P01", "42883":
            newestServer.recordLostTables(of: connection.database)
            return failure
        default: return failure
        }
    }
}
