import Base

/// The columns of a notice in `notices`.
enum PostgresNoticeRow {
    static let columns = "seq, nonce, user_id, at, \(Notice.Columns.names), pending_since, attempts"

    static func read(_ row: inout PostgresRow) throws(StatementFailure) -> Notice {
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
            throw StatementFailure(StoreError(damagedRow: "Notice \(sequence)"))
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
}
