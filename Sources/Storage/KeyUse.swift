package import Crypto

/// How many stored tokens need which keys.
///
/// A bound refresh token needs two: the key that seals it and the key that it is bound to.
package struct KeyUse: Equatable, Sendable {
    /// The number of tokens, each counted once.
    package var tokens = 0
    /// The number of tokens that each key seals, or that are bound to it.
    package var tokensByKey: [KeyID: Int] = [:]

    package init() {}
}

/// The keys of grants that name the same ones.
private struct KeyNames {
    var refreshKey: String?
    var accessKey: String?
    var bindingKey: String?
    var grants: Int
}

extension KeyUse {
    fileprivate mutating func add(_ names: KeyNames) throws(StoreError) {
        let sealing = [names.refreshKey, names.accessKey].compactMap(\.self)
        tokens += sealing.count * names.grants
        for name in sealing + [names.bindingKey].compactMap(\.self) {
            guard let key = KeyID(name) else { throw StoreError(damagedRow: "The key id of a grant") }
            tokensByKey[key, default: 0] += names.grants
        }
    }
}

extension SQLQuery {
    static let countKeys = SQLQuery(
        "count keys",
        sql: """
            SELECT refresh_key, access_key, binding_key, count(*) FROM refresh_worker.grants
            GROUP BY refresh_key, access_key, binding_key
            """
    )
}

extension Store {
    /// Returns the keys that stored tokens need, with the number of tokens of each.
    package func keysInUse() async throws -> [KeyID: Int] { try await keyUse().tokensByKey }
}

extension SQLStore {
    package func keyUse() async throws -> KeyUse {
        let rows = try await rows(SQLStatement(.countKeys), by: .wholeTable) { row in
            KeyNames(
                refreshKey: row.optionalText(),
                accessKey: row.optionalText(),
                bindingKey: row.optionalText(),
                grants: row.count()
            )
        }
        var use = KeyUse()
        for row in rows { try use.add(row) }
        return use
    }
}
