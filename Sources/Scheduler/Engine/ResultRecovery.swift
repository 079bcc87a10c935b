package import Base
package import Crypto
package import Storage

/// The outcome of a recovery: a former process could not store these results, and left them in a spill file.
///
/// The same rules decide about them as about a response that comes late. Storing a result twice has no further effect.
package struct ResultRecovery: Hashable, Sendable {
    /// Results that are now stored, or were stored before.
    package var stored = 0
    /// Results that no longer count: their grants have been reconnected or ended since.
    package var outdated = 0
    /// Results of grants that are not in the store.
    package var unknown = 0

    private static let batchSize = 100

    package init() {}

    /// Stores results, many in one transaction.
    package static func recover(
        _ results: [RefreshResult],
        into store: any Store,
        maxRate: Double,
        time: any TimeSource,
        random: any RandomSource
    ) async throws -> ResultRecovery {
        let rules = RefreshRules(maxRate: maxRate)
        var recovery = ResultRecovery()
        var rest = results[...]
        while !rest.isEmpty {
            let batch = rest.prefix(batchSize).map { (result: $0, jitter: random.nextUnit()) }
            rest = rest.dropFirst(batchSize)
            let (former, now) = (recovery, time.now)
            recovery = try await store.transact { transaction in
                try transaction.willRead(grants: batch.map(\.result.attempt.grant), healthOf: [])
                var recovery = former
                for (result, jitter) in batch {
                    try recovery.store(result, by: rules, at: now, jitter, in: transaction)
                }
                return recovery
            }
        }
        return recovery
    }

    private mutating func store(
        _ result: RefreshResult,
        by rules: RefreshRules,
        at now: Timestamp,
        _ jitter: Double,
        in transaction: any StoreTransaction
    ) throws {
        guard let grant = try transaction.grant(for: result) else {
            unknown += 1
            return
        }
        let time = transaction.leaseTime
        // An old response shows nothing about the client as it is now.
        let health = ClientHealth(epoch: time.epoch)
        let decision = rules.decide(
            DecisionContext(
                result: result,
                grant: grant,
                health: health,
                now: now,
                instant: time.instant,
                jitter: jitter
            )
        )
        try transaction.store(decision, about: grant, at: now)
        if decision.isVoid { outdated += 1 } else { stored += 1 }
    }
}

/// Keeps answers that the store does not take, so that the next process finds them.
package protocol ResultSpill: Sendable {
    /// Writes results durably outside the store, sealed, and throws a `FileError` if that fails.
    func save(_ results: [RefreshResult]) async throws
    /// Frees the disk space that is reserved for commits, and returns `false` if there is none left to free.
    func freeReserve() async -> Bool
}

/// Answers with tokens that a stopping worker could not store.
package struct UnstoredResults: Sendable, Hashable {
    package static let none = UnstoredResults()

    /// The number of results in the spill file.
    package var spilled = 0
    /// The number of results that were kept nowhere: if the server rotates refresh tokens, these grants are lost.
    package var lost = 0
}

/// The form of a result that the store did not take: one sealed value.
///
/// The tokens in it are sealed already. The whole value is sealed again, so that only a process with the key ring can
/// change its grant, its generation or its answer.
extension RefreshResult {
    private static let version = 1

    /// Seals a result that brings tokens, and returns `nil` for any other.
    package func sealed(with vault: TokenVault) throws(CryptoError) -> SealedSecret? {
        guard let spilledText else { return nil }
        return try vault.seal(spilledResult: Secret(utf8: spilledText))
    }

    /// Opens a sealed result.
    package static func open(_ sealed: SealedSecret, with vault: TokenVault) throws -> RefreshResult {
        let text = try vault.open(spilledResult: sealed).reveal()
        guard let object = JSONValue.object(in: text.utf8), object["version"]?.integer == Int64(version),
            let result = try result(from: object)
        else {
            throw FileError("A result in it was written by another version of refresh-worker.")
        }
        return result
    }

    // MARK: Writing

    private var spilledText: [UInt8]? {
        guard answer.containsTokens else { return nil }
        var line = JSONLine()
        line.field("version", Self.version)
        line.field("grant", attempt.grant.rawValue)
        line.field("client", attempt.clientID)
        line.field("claim", attempt.claim)
        line.field("generation", attempt.generation)
        if let lastAttemptAt = attempt.lastAttemptAt { line.field("last_attempt_at", lastAttemptAt.milliseconds) }
        if let sent = attempt.refreshToken { line.object("sent") { Self.write(sent, into: &$0) } }
        if clientSecret != .none { line.field("client_secret", Int64(clientSecret.rawValue)) }
        switch answer {
        case .granted(let tokens):
            line.object("access") { Self.write(tokens.accessToken, into: &$0) }
            if let rotated = tokens.rotated { line.object("rotated") { Self.write(rotated, into: &$0) } }
            if let scope = tokens.scope { line.field("scope", scope) }
            if let end = tokens.refreshTokenExpiresAt { line.field("refresh_expires_at", end.milliseconds) }
            if let digest = tokens.digest { line.field("access_digest", Base64URL.encode(digest)) }
        case .flawed(let code, let rotated?):
            line.field("flaw", code)
            line.object("rotated") { Self.write(rotated, into: &$0) }
        case .flawed, .failed, .nothingToSend, .unreadable, .revocation: return nil
        }
        return line.bytes
    }

    private static func write(_ token: Grant.AccessToken, into line: inout JSONLine) {
        line.field("sealed", Base64URL.encode(token.sealed.bytes))
        line.field("obtained_at", token.obtainedAt.milliseconds)
        line.field("expires_at", token.expiresAt.milliseconds)
        line.field("type", token.type)
    }

    private static func write(_ token: Grant.RefreshToken, into line: inout JSONLine) {
        line.field("sealed", Base64URL.encode(token.sealed.bytes))
        if let marks = token.marks {
            line.field("prefix", Base64URL.encode(marks.prefix.bytes))
            line.field("digest", Base64URL.encode(marks.digest.bytes))
        }
        if let end = token.expiresAt { line.field("expires_at", end.milliseconds) }
        if let consent = token.consentedAt { line.field("consented_at", consent.milliseconds) }
        if token.isExpiryNoticed { line.field("expiry_noticed", true) }
    }

    // MARK: Reading

    private static func result(from object: JSONValue) throws(CryptoError) -> RefreshResult? {
        guard let grant = object["grant"]?.integer, let client = object["client"]?.string,
            let claim = object["claim"]?.integer, let generation = object["generation"]?.integer
        else { return nil }
        let attempt = RefreshAttempt(
            grant: GrantID(rawValue: grant),
            clientID: client,
            claim: claim,
            generation: generation,
            lastAttemptAt: object["last_attempt_at"]?.timestamp,
            refreshToken: try object["sent"].flatMap { (value) throws(CryptoError) in try refreshToken(from: value) }
        )
        let clientSecret = ClientSecretFingerprint(stored: object["client_secret"])
        let rotated = try object["rotated"].flatMap { (value) throws(CryptoError) in try refreshToken(from: value) }
        if let flaw = object["flaw"]?.string {
            return rotated.map {
                RefreshResult(attempt: attempt, answer: .flawed(code: flaw, rotated: $0), clientSecret: clientSecret)
            }
        }
        guard
            let access = try object["access"].flatMap({ (value) throws(CryptoError) in try accessToken(from: value) }),
            (object["rotated"] == nil) == (rotated == nil)
        else { return nil }
        let tokens = RefreshedTokens(
            accessToken: access,
            rotated: rotated,
            scope: object["scope"]?.string,
            refreshTokenExpiresAt: object["refresh_expires_at"]?.timestamp,
            digest: bytes(object["access_digest"]).flatMap { $0.count == IssuedTokens.digestLength ? $0 : nil }
        )
        return RefreshResult(attempt: attempt, answer: .granted(tokens), clientSecret: clientSecret)
    }

    private static func accessToken(from object: JSONValue) throws(CryptoError) -> Grant.AccessToken? {
        guard let sealed = bytes(object["sealed"]), let obtainedAt = object["obtained_at"]?.timestamp,
            let expiresAt = object["expires_at"]?.timestamp, let type = object["type"]?.string
        else { return nil }
        return Grant.AccessToken(
            sealed: try SealedSecret(bytes: sealed),
            obtainedAt: obtainedAt,
            expiresAt: expiresAt,
            type: type
        )
    }

    private static func refreshToken(from object: JSONValue) throws(CryptoError) -> Grant.RefreshToken? {
        guard let sealed = bytes(object["sealed"]) else { return nil }
        return Grant.RefreshToken(
            sealed: try SealedSecret(bytes: sealed),
            marks: TokenMarks(prefix: bytes(object["prefix"]), digest: bytes(object["digest"])),
            expiresAt: object["expires_at"]?.timestamp,
            consentedAt: object["consented_at"]?.timestamp,
            isExpiryNoticed: object["expiry_noticed"] == .bool(true)
        )
    }

    private static func bytes(_ value: JSONValue?) -> [UInt8]? { value?.string.flatMap { Base64URL.decode($0) } }
}
