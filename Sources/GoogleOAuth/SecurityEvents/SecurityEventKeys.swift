package import Clocks
package import HTTPClient
import JSON
package import Secrets

/// Google's keys for security events: fetched when needed, kept, and fetched again when an unknown one is named.
///
/// Many callers share one fetch. Strangers can name as many unknown keys as they like: a fetch comes of it once a minute at
/// most.
package actor SecurityEventKeys {
    /// What lies between two fetches that an unknown key gives rise to.
    static let pauseBetweenFetches = Duration.seconds(60)
    /// What lies between a fetch that failed and the next.
    static let pauseAfterFailure = Duration.seconds(10)
    /// How long keys serve while Google cannot be reached.
    static let longestLife = Duration.seconds(86_400)

    private struct Known {
        let set: KeySet
        let fetchedAt: BootInstant
        let freshFor: Duration
    }

    private let http: HTTPClient
    private let configurationEndpoint: Endpoint
    private let time: any TimeSource

    private var known: Known?
    private var failedAt: BootInstant?
    private var fetch: Task<Void, Never>?

    /// - Parameters:
    ///   - http: what fetches.
    ///   - configurationEndpoint: tells issuer and keys; Google's is
    ///     https://accounts.google.com/.well-known/risc-configuration.
    ///   - time: the clock by which keys grow old.
    package init(http: HTTPClient, configurationEndpoint: Endpoint, time: any TimeSource) {
        self.http = http
        self.configurationEndpoint = configurationEndpoint
        self.time = time
    }

    /// The issuer, and its key of that name if it has one.
    ///
    /// A key is unknown only when the issuer itself says so: where it cannot be asked, this throws
    /// ``SecurityEventRefusal/unavailable(retryAfter:)``, so that the event comes again.
    package func key(named name: String) async throws(SecurityEventRefusal) -> (issuer: String, key: RSAPublicKey?) {
        if needsFetch(for: name) { await fetchOnce() }
        guard let known, age(of: known) < Self.longestLife else { throw unavailable }
        if let key = known.set.keys[name] { return (known.set.issuer, key) }
        // The name may be that of a new key, of which nobody here has heard because the last fetch failed.
        guard failedAt == nil else { throw unavailable }
        return (known.set.issuer, nil)
    }

    private func needsFetch(for name: String) -> Bool {
        if let failedAt, time.sinceBoot - failedAt < Self.pauseAfterFailure { return false }
        guard let known, age(of: known) < known.freshFor else { return true }
        return known.set.keys[name] == nil && age(of: known) >= Self.pauseBetweenFetches
    }

    private func age(of known: Known) -> Duration { time.sinceBoot - known.fetchedAt }

    private var unavailable: SecurityEventRefusal {
        let elapsed = failedAt.map { time.sinceBoot - $0 } ?? .zero
        return .unavailable(retryAfter: max(.seconds(1), Self.pauseAfterFailure - elapsed))
    }

    /// Fetches, or waits for the fetch that is under way; a caller who leaves does not end it for the others.
    private func fetchOnce() async {
        if fetch == nil {
            fetch = Task {
                do throws(LookupFailure) {
                    let (set, freshFor) = try await fetchKeys()
                    known = Known(set: set, fetchedAt: time.sinceBoot, freshFor: freshFor)
                    failedAt = nil
                } catch {
                    failedAt = time.sinceBoot
                }
                fetch = nil
            }
        }
        await fetch?.value
    }

    private func fetchKeys() async throws(LookupFailure) -> (KeySet, Duration) {
        let (configuration, _) = try await get(configurationEndpoint)
        guard let issuer = configuration["issuer"]?.string, !issuer.isEmpty,
            let address = configuration["jwks_uri"]?.string
        else { throw .unavailable(code: "flawed_answer") }
        let endpoint: Endpoint
        do throws(EndpointError) {
            endpoint = try Endpoint(address)
        } catch {
            throw .unavailable(code: "flawed_answer")
        }
        let (document, freshFor) = try await get(endpoint)
        guard let set = KeySet(issuer: issuer, document: document) else { throw .unavailable(code: "flawed_answer") }
        return (set, freshFor)
    }

    private func get(_ endpoint: Endpoint) async throws(LookupFailure) -> (JSONValue, Duration) {
        let request = HTTPRequest(method: .get, endpoint: endpoint, headers: [("Accept", "application/json")])
        let response: HTTPResponse
        do throws(HTTPFailure) {
            response = try await http.send(request)
        } catch {
            throw .unavailable(code: error.shortCode)
        }
        guard response.status == 200 else { throw .unavailable(code: "http_\(response.status)") }
        guard let body = JSONValue.object(in: response.body.reveal()) else { throw .unavailable(code: "not_json") }
        return (body, Freshness.read(cacheControl: response.header("Cache-Control")))
    }
}
