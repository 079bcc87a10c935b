/// The statements that read grants, for one database, and either with locks or without.
struct GrantQueries: Sendable {
    /// The columns that ``GrantRowReader`` reads, and the tables that they are in.
    let columns: String
    let source: String

    let byID: SQLQuery
    let ofConnection: SQLQuery
    let ofUser: SQLQuery
    let page: SQLQuery
    let pageOfState: SQLQuery
    let ofAccount: GrantSearch
    let sameAccount: GrantSearch
    let sameEmail: GrantSearch
    let ofEmail: SQLQuery
    let byPrefixMark: GrantSearch
    let byDigestMark: GrantSearch

    /// `lock` is the end of a statement that keeps the grants as they are.
    init(columns: String, source: String, lock: String = "") {
        self.columns = columns
        self.source = source
        let select = { (name: String, rest: String) in
            SQLQuery(name, sql: "SELECT \(columns) FROM \(source) WHERE \(rest)\(lock)")
        }
        let search = { (name: String, condition: String, count: Int) in
            GrantSearch(
                grants: select(name, "\(condition) ORDER BY id"),
                ids: SQLQuery("ids of \(name)", sql: "SELECT id FROM refresh_worker.grants WHERE \(condition)"),
                grantsOfIDs: select("found \(name)", "id = ANY($\(count + 1)) AND \(condition) ORDER BY id")
            )
        }
        let isOfUser = "reason <> '\(GrantReason.userDeleted)'"
        let hasToken = "refresh_token IS NOT NULL"
        byID = select("grant by id", "id = $1")
        ofConnection = select("grant of a connection", "user_id = $1 AND connection = $2")
        ofUser = select("grants of a user", "user_id = $1 ORDER BY id")
        page = select("page of grants", "id > $1 ORDER BY id LIMIT $2")
        pageOfState = select("page of grants in a state", "id > $1 AND state = $3 ORDER BY id LIMIT $2")
        ofAccount = search("grants of a Google account", "google_user_id = $1 AND \(isOfUser)", 1)
        sameAccount = search(
            "grants of the same Google account",
            "google_user_id = $1 AND id <> $2 AND \(hasToken)",
            2
        )
        // A grant that is known to belong to another account than $1 does not count.
        sameEmail = search(
            "grants of the same e-mail",
            """
            email IS NOT NULL AND lower(email) = lower($3 COLLATE "C") AND id <> $2 AND \(hasToken)
                AND ($1 IS NULL OR google_user_id IS NULL)
            """,
            3
        )
        // Not with OR: PostgreSQL would then read all grants.
        ofEmail = select(
            "grants of an e-mail",
            """
            id IN (
                SELECT id FROM refresh_worker.grants
                WHERE email IS NOT NULL AND lower(email) = lower($1 COLLATE "C")
                UNION ALL
                SELECT owned.id FROM refresh_worker.users AS owner
                JOIN refresh_worker.grants AS owned ON owned.user_id = owner.user_id
                WHERE owner.email IS NOT NULL AND lower(owner.email) = lower($1 COLLATE "C")
            ) ORDER BY id LIMIT $2
            """
        )
        byPrefixMark = search("grants by prefix mark", "refresh_prefix_mark = $1 AND \(isOfUser)", 1)
        byDigestMark = search("grants by digest mark", "refresh_digest_mark = $1 AND \(isOfUser)", 1)
    }
}

/// The statements that find grants by something else than their id, sorted by id.
///
/// A statement that locks rows is divided: tables that are spread over several servers cannot be searched and locked in
/// one (https://docs.citusdata.com/en/stable/develop/reference_workarounds.html). So PostgreSQL finds the ids without a
/// lock, and then reads the grants by their ids with a lock, and with the condition again.
struct GrantSearch: Sendable {
    /// The search in one statement, for a store without locks of rows.
    let grants: SQLQuery
    let ids: SQLQuery
    /// It takes the ids after the parameters of the search.
    let grantsOfIDs: SQLQuery
}
