package import Base
package import Crypto
package import HTTPClient

/// A cache of the keys that another party signs its tokens with. It fetches them when they are first used, and again
/// when a token names an unknown key.
///
/// Concurrent callers share one fetch. Attackers can name any number of unknown keys, so these cause at most one fetch
/// per minute.
///
///     let keys = KeySetCache(.keys(endpoint), http: http, time: time)
///     let (_, key) = try await keys.key(id: "a1b2")     // nil if the issuer has no such key
package actor KeySetCache {
    package enum Source: Sendable {
        /// The address of a key set.
        case keys(Endpoint)
        /// A document that names an issuer and the address of its keys, such as
        /// https://accounts.google.com/.well-known/risc-configuration.
        case configuration(Endpoint)
        /// A file with a key set, which is small and read at most once a minute.
        case file(read: @Sendable () throws -> [UInt8])
    }

    /// The keys are not available now, so a token can be neither accepted nor refused.
    package struct Unavailable: Error, Hashable, Sendable {
        package let retryAfter: Duration
    }

    /// The shortest time between two fetches for unknown keys.
    static let minimumFetchInterval = Duration.seconds(60)
    /// The delay after a failed fetch.
    static let delayAfterFailure = Duration.seconds(10)
    /// The longest use of cached keys while newer ones cannot be fetched.
    static let maximumUse = Duration.seconds(2 * 86_400)
    private static let fetchDeadline = Duration.seconds(10)

    package let source: Source
    private let http: HTTPClient
    private let time: any TimeSource

    private struct CachedKeys {
        let set: KeySet
        let fetchedAt: BootInstant
        let freshFor: Duration
    }

    private var cached: CachedKeys?
    private var failedAt: BootInstant?
    private var fetch: Task<Void, Never>?

    /// Makes an empty cache, whose ages `time` measures.
    package init(_ source: Source, http: HTTPClient, time: any TimeSource) {
        self.source = source
        self.http = http
        self.time = time
    }

    /// Returns the issuer, if the source names it, and the key with this id if there is one. Only the newest key set
    /// shows that a key does not exist. If that cannot be fetched, this throws.
    package func key(id: String) async throws(Unavailable) -> (issuer: String?, key: PublicKey?) {
        if let key = cachedKey(id: id) { return (cached?.set.issuer, key) }
        let fetches = needsFetch(for: id)
        if fetches { await startFetch().value }
        guard let cached, age(of: cached) < Self.maximumUse else { throw unavailable }
        if let key = cached.set.keys[id] { return (cached.set.issuer, key) }
        // The id might belong to a new key that is not cached because the last fetch failed.
        guard failedAt == nil else { throw unavailable }
        // Or it is newer than the cached set, which is not fetched again so soon.
        guard fetches else {
            throw Unavailable(retryAfter: max(.seconds(1), Self.minimumFetchInterval - age(of: cached)))
        }
        return (cached.set.issuer, nil)
    }

    /// Returns the key with this id if it is cached. It is used while newer ones come, because their server might hang.
    package func cachedKey(id: String) -> PublicKey? {
        guard let cached, age(of: cached) < Self.maximumUse, let key = cached.set.keys[id] else { return nil }
        if needsFetch(for: id) { _ = startFetch() }
        return key
    }

    private func needsFetch(for id: String) -> Bool {
        if let failedAt, time.sinceBoot - failedAt < Self.delayAfterFailure { return false }
        guard let cached, age(of: cached) < cached.freshFor else { return true }
        return cached.set.keys[id] == nil && age(of: cached) >= Self.minimumFetchInterval
    }

    private func age(of keys: CachedKeys) -> Duration {
        time.sinceBoot - keys.fetchedAt
    }

    private var unavailable: Unavailable {
        guard let failedAt else { return Unavailable(retryAfter: Self.delayAfterFailure) }
        let elapsed = time.sinceBoot - failedAt
        return Unavailable(retryAfter: max(.seconds(1), Self.delayAfterFailure - elapsed))
    }

    /// Returns the fetch in progress, or a new one. A caller that is cancelled does not end it for the others.
    private func startFetch() -> Task<Void, Never> {
        if let fetch { return fetch }
        let task = Task {
            do throws(LookupError) {
                let (set, freshFor) = try await fetchKeys()
                cached = CachedKeys(set: set, fetchedAt: time.sinceBoot, freshFor: freshFor)
                failedAt = nil
            } catch {
                failedAt = time.sinceBoot
            }
            fetch = nil
        }
        fetch = task
        return task
    }

    private func fetchKeys() async throws(LookupError) -> (KeySet, Duration) {
        var issuer: String?
        let address: Endpoint
        switch source {
        case .file(let read):
            do {
                guard let set = KeySet(JSONValue.object(in: try read())) else { throw LookupError.flawed }
                return (set, Self.lifetimes.lowerBound)
            } catch {
                throw .flawed
            }
        case .keys(let endpoint): address = endpoint
        case .configuration(let endpoint):
            let (configuration, _) = try await get(endpoint)
            issuer = configuration["issuer"]?.string
            guard issuer?.isEmpty == false, let text = configuration["jwks_uri"]?.string else { throw .flawed }
            do throws(FormatError) {
                address = try Endpoint(text)
            } catch {
                throw .flawed
            }
        }
        let (document, freshFor) = try await get(address)
        guard let set = KeySet(document, issuer: issuer) else { throw .flawed }
        return (set, freshFor)
    }

    private func get(_ endpoint: Endpoint) async throws(LookupError) -> (JSONValue, Duration) {
        let request = HTTPRequest(method: .get, endpoint: endpoint, headers: [("Accept", "application/json")])
        let (body, cacheControl) = try await http.lookUp(request, deadline: Self.fetchDeadline)
        return (body, Self.lifetime(cacheControl: cacheControl))
    }
}

extension KeySetCache {
    private static let defaultLifetime = Duration.seconds(3600)
    private static let lifetimes = Duration.seconds(300)...Duration.seconds(86_400)

    /// Returns the time for which an answer can be cached (RFC 9111, section 5.2.2.1): `max-age` within limits, or an
    /// hour if the header does not have it.
    package static func lifetime(cacheControl: String?) -> Duration {
        let directives = (cacheControl ?? "").lowercased().split(separator: ",")
        for directive in directives {
            let words = directive.split(separator: "=", maxSplits: 1).map { $0.filter { $0 != " " && $0 != "\"" } }
            guard words.count == 2, words[0] == "max-age", let seconds = Int64(words[1]) else { continue }
            return Duration.seconds(seconds.clamped(to: 0...1_000_000)).clamped(to: lifetimes)
        }
        return defaultLifetime
    }
}
