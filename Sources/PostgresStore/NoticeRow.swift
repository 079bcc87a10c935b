import Clocks
import Store

/// How a notice lies in a row of `notices`.
enum NoticeRow {
    static let columns = "seq, nonce, grant_id, user_id, at, from_state, to_state, reason, pending_since, attempts"

    static func read(_ row: inout Row) throws(Failure) -> Notice {
        let sequence = row.integer()
        let nonce = UInt32(truncatingIfNeeded: row.integer())
        let grant = GrantID(rawValue: row.integer())
        return Notice(
            sequence: sequence,
            nonce: nonce,
            grant: grant,
            userID: row.text(),
            at: Timestamp(milliseconds: row.integer()),
            from: try GrantRow.state(row.text(), of: grant),
            to: try GrantRow.state(row.text(), of: grant),
            reason: GrantReason(rawValue: row.text()),
            pendingSince: Timestamp(milliseconds: row.integer()),
            attempts: Int(row.integer())
        )
    }
}
