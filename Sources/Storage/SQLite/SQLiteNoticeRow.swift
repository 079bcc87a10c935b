import Base

/// The columns of a notice in `notices`.
enum SQLiteNoticeRow {
    static let columns = "seq, nonce, user_id, at, \(Notice.Columns.names), pending_since, attempts"

    static func read(_ row: inout SQLiteRow) throws(StoreError) -> Notice {
        let sequence = row.integer()
        let nonce = UInt32(truncatingIfNeeded: row.integer())
        let userID = row.text()
        let at = Timestamp(milliseconds: row.integer())
        let columns = Notice.Columns(
            kind: row.text(),
            grant: row.optionalInteger(),
            from: row.optionalText(),
            to: row.optionalText(),
            reason: row.optionalText(),
            lost: row.optionalText(),
            granted: row.optionalText(),
            session: row.optionalText()
        )
        guard let content = columns.content else {
            throw StoreError(damagedRow: "Notice \(sequence)")
        }
        return Notice(
            sequence: sequence,
            nonce: nonce,
            userID: userID,
            at: at,
            content: content,
            pendingSince: Timestamp(milliseconds: row.integer()),
            attempts: Int(row.integer())
        )
    }

    /// Binds the columns of a content, in the order of their names.
    static func bind(_ columns: Notice.Columns, to statement: Statement) {
        statement.bind(columns.kind)
        statement.bind(columns.grant)
        statement.bind(columns.from)
        statement.bind(columns.to)
        statement.bind(columns.reason)
        statement.bind(columns.lost)
        statement.bind(columns.granted)
        statement.bind(columns.session)
    }
}
