package import Base
import Crypto
package import HTTPClient

/// The cache of Google's keys for security events. It fetches them when they are first used, and again when a token
/// names an unknown key.
///
/// Concurrent callers share one fetch. Attackers can name any number of unknown keys, so these cause at most one fetch
/// per minute.
package actor SecurityEventKeys {
    /// The shortest time between two fetches for unknown keys.
    static let minimumFetchInterval = Duration.seconds(60)
    /// The delay after a failed fetch.
    static let delayAfterFailure = Duration.seconds(10)
    /// The longest use of cached keys while Google cannot be reached.
    static let maximumUse = Duration.seconds(86_400)

    private let http: HTTPClient
    private let configurationEndpoint: Endpoint
    private let time: any TimeSource

    private var cached: (set: KeySet, fetchedAt: BootInstant, freshFor: Duration)?
    private var failedAt: BootInstant?
    private var fetch: Task<Void, Never>?

    /// - Parameters:
    ///   - http: the client that fetches.
    ///   - configurationEndpoint: the URL that names the issuer and its keys. Google's is
    ///     https://accounts.google.com/.well-known/risc-configuration.
    ///   - time: the clock for the age of the keys.
    package init(http: HTTPClient, configurationEndpoint: Endpoint, time: any TimeSource) {
        self.http = http
        self.configurationEndpoint = configurationEndpoint
        self.time = time
    }

    /// Returns the issuer, and its key with this id if it has one.
    ///
    /// Only the issuer's own key set shows that a key does not exist. If it cannot be fetched, this throws
    /// ``SecurityEventError/unavailable(retryAfter:)``, so that Google sends the event again.
    func key(id: String) async throws(SecurityEventError) -> (issuer: String, key: RSAPublicKey?) {
        if needsFetch(for: id) { await fetchOnce() }
        guard let cached, age(of: cached) < Self.maximumUse else { throw unavailable }
        if let key = cached.set.keys[id] { return (cached.set.issuer, key) }
        // The id might belong to a new key that is not cached because the last fetch failed.
        guard failedAt == nil else { throw unavailable }
        return (cached.set.issuer, nil)
    }

    private func needsFetch(for id: String) -> Bool {
        if let failedAt, time.sinceBoot - failedAt < Self.delayAfterFailure { return false }
        guard let cached, age(of: cached) < cached.freshFor else { return true }
        return cached.set.keys[id] == nil && age(of: cached) >= Self.minimumFetchInterval
    }

    private func age(of keys: (set: KeySet, fetchedAt: BootInstant, freshFor: Duration)) -> Duration {
        time.sinceBoot - keys.fetchedAt
    }

    private var unavailable: SecurityEventError {
        let elapsed = failedAt.map { time.sinceBoot - $0 } ?? .zero
        return .unavailable(retryAfter: max(.seconds(1), Self.delayAfterFailure - elapsed))
    }

    /// Fetches, or waits for the fetch in progress.
    ///
    /// A caller that is cancelled does not end the fetch for the others.
    private func fetchOnce() async {
        if fetch == nil {
            fetch = Task {
                do throws(LookupError) {
                    let (set, freshFor) = try await fetchKeys()
                    cached = (set, time.sinceBoot, freshFor)
                    failedAt = nil
                } catch {
                    failedAt = time.sinceBoot
                }
                fetch = nil
            }
        }
        await fetch?.value
    }

    private func fetchKeys() async throws(LookupError) -> (KeySet, Duration) {
        let (configuration, _) = try await get(configurationEndpoint)
        guard let issuer = configuration["issuer"]?.string, !issuer.isEmpty,
            let address = configuration["jwks_uri"]?.string
        else { throw .unavailable(code: "flawed_answer") }
        let endpoint: Endpoint
        do throws(FormatError) {
            endpoint = try Endpoint(address)
        } catch {
            throw .unavailable(code: "flawed_answer")
        }
        let (document, freshFor) = try await get(endpoint)
        guard let set = KeySet(issuer: issuer, document: document) else { throw .unavailable(code: "flawed_answer") }
        return (set, freshFor)
    }

    private func get(_ endpoint: Endpoint) async throws(LookupError) -> (JSONValue, Duration) {
        let request = HTTPRequest(method: .get, endpoint: endpoint, headers: [("Accept", "application/json")])
        let response: HTTPResponse
        do throws(HTTPError) {
            response = try await http.send(request)
        } catch {
            throw .unavailable(code: error.shortCode)
        }
        guard response.status == 200 else { throw .unavailable(code: "http_\(response.status)") }
        guard let body = JSONValue.object(in: response.body.reveal()) else { throw .unavailable(code: "not_json") }
        return (body, Self.lifetime(cacheControl: response.header("Cache-Control")))
    }
}

/// A fetched set of the keys that sign security events.
struct KeySet: Sendable {
    /// Google has two or three keys.
    ///
    /// A much longer list is not read to its end.
    private static let maximumKeys = 64
    private static let maximumKeyID = 255

    let issuer: String
    let keys: [String: RSAPublicKey]

    /// Reads a JSON Web Key Set (RFC 7517, section 5), and skips keys of other kinds and uses.
    ///
    /// `nil` if it does not hold a usable key, so it cannot be Google's key set.
    init?(issuer: String, document: JSONValue) {
        self.issuer = issuer
        let entries = (document["keys"]?.array ?? []).prefix(Self.maximumKeys).compactMap(Self.entry)
        keys = Dictionary(entries) { first, _ in first }
        if keys.isEmpty { return nil }
    }

    private static func entry(_ key: JSONValue) -> (String, RSAPublicKey)? {
        guard key["kty"]?.string == "RSA",
            key["use"] == nil || key["use"]?.string == "sig",
            key["alg"] == nil || key["alg"]?.string == "RS256",
            let id = key["kid"]?.string, (1...maximumKeyID).contains(id.utf8.count),
            let modulus = key["n"]?.string.flatMap({ Base64URL.decode($0) }),
            let exponent = key["e"]?.string.flatMap({ Base64URL.decode($0) })
        else { return nil }
        do throws(CryptoError) {
            return (id, try RSAPublicKey(modulus: modulus, exponent: exponent))
        } catch {
            return nil
        }
    }
}

extension SecurityEventKeys {
    private static let defaultLifetime = Duration.seconds(3600)
    private static let lifetimes = Duration.seconds(300)...Duration.seconds(86_400)

    /// Returns the time for which an answer can be cached (RFC 9111, section 5.2.2.1): `max-age` within limits, or an
    /// hour if the header does not have it.
    static func lifetime(cacheControl: String?) -> Duration {
        let directives = (cacheControl ?? "").lowercased().split(separator: ",")
        for directive in directives {
            let words = directive.split(separator: "=", maxSplits: 1).map { $0.filter { $0 != " " && $0 != "\"" } }
            guard words.count == 2, words[0] == "max-age", let seconds = Int64(words[1]) else { continue }
            return Duration.seconds(seconds.clamped(to: 0...1_000_000)).clamped(to: lifetimes)
        }
        return defaultLifetime
    }
}
