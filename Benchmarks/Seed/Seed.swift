import Base
import Crypto
import Foundation
import Storage

/// The command `BenchmarkSeed`: fills a store with grants for a benchmark, and afterwards compares the store with the
/// tokens that the endpoint issued.
@main
enum Seed {
    static let help = """
        usage: BenchmarkSeed fill     --database FILE --keys FILE --grants N [--start MS] [--outage S] [--within S]
                                      [--bound 1]
               BenchmarkSeed verify   --database FILE --keys FILE --issued LOG
               BenchmarkSeed exercise --database FILE --keys FILE --grants N [--ahead S]
               BenchmarkSeed heap     --entries N

        fill writes N grants as a worker leaves them that stopped --outage seconds before --start, which is in
        milliseconds since 1970 and is now by default. With --within, only grants due within that many seconds after the
        start are written. With --bound 1 their refresh tokens are bound to the ring's binding key.
        verify opens every stored access token and compares it with the last one in the endpoint's log for its grant.
        exercise claims the N grants that are due first, --ahead seconds from now, commits a made-up refresh of each,
        and prints the time that it took.
        heap pushes, moves and pops N deadlines, and prints the time that it took.
        FILE may be postgres://… for verify and exercise.

        """

    static func main() async {
        do {
            var arguments = Array(CommandLine.arguments.dropFirst())[...]
            switch arguments.popFirst() {
            case "fill": try await fill(Options(arguments))
            case "verify": try await verify(Options(arguments))
            case "exercise": try await exercise(Options(arguments))
            case "heap": try heap(Options(arguments))
            default: throw SeedError(message: help)
            }
        } catch {
            FileHandle.standardError.write(Data("BenchmarkSeed: \(error)\n".utf8))
            exit(1)
        }
    }

    private static func fill(_ options: Options) async throws {
        let start = try options.number("start").map(Timestamp.init(milliseconds:)) ?? SystemTime().now
        let store = try await open(options)
        let vault = try vault(options)
        let ring = vault.ring.current
        // As a worker does before its first grant. One that found no list would count the keys of all grants to make it.
        try await store.recordKey(ring.sealingKeyID, of: ring)
        let bindingKeyID = try options.number("bound") == 1 ? ring.bindingKey?.id : nil
        if let bindingKeyID { try await store.recordKey(bindingKeyID, of: ring) }
        let writer = PopulationWriter(
            store: store,
            vault: vault,
            population: Int(try options.required("grants", options.number)),
            workedUntil: start - .seconds(try options.number("outage") ?? 0),
            horizon: try options.number("within").map { start + .seconds($0) },
            bindingKeyID: bindingKeyID
        )
        let written = try await writer.run()
        await store.close()
        print("{\"written\": \(written)}")
    }

    private static func verify(_ options: Options) async throws {
        let store = try await open(options)
        let log = try IssueLog(path: try options.required("issued", options.text))
        let outcome = try await StoreVerification(store: store, vault: try vault(options), log: log).run()
        await store.close()
        print(outcome.json)
        guard outcome.wrong == 0 else {
            throw SeedError(message: "Stored tokens were never issued for their grants, as for \(outcome.examples)")
        }
    }

    private static func exercise(_ options: Options) async throws {
        let store = try await open(options)
        let count = Int(try options.required("grants", options.number))
        let ahead = Duration.seconds(try options.number("ahead") ?? 0)
        print(try await Exercise(store: store, vault: try vault(options), count: count, ahead: ahead).run())
        await store.close()
    }

    private static func heap(_ options: Options) throws {
        let count = Int(try options.required("entries", options.number))
        guard count > 0 else { throw SeedError(message: "--entries takes a number from 1 up.") }
        print(try HeapBenchmark(count: count).run())
    }

    private static func open(_ options: Options) async throws -> any Store {
        let place = try options.required("database", options.text)
        if place.hasPrefix("postgres://") {
            let clock = DatabaseClock(local: SystemTime())
            return try await PostgresStore(at: try DatabaseAddress(url: Secret(place)), clock: clock)
        }
        return try SQLiteStore(path: place, timeSource: SystemTime())
    }

    private static func vault(_ options: Options) throws -> TokenVault {
        let path = try options.required("keys", options.text)
        return TokenVault(ring: try ReloadableKeyRing { try KeyRingFile.load(path: path) })
    }
}

/// The reason why the command cannot continue.
struct SeedError: Error, CustomStringConvertible {
    let message: String

    var description: String { message }
}

/// The arguments after the command's name: pairs of an option and its value.
struct Options {
    private var values: [String: String] = [:]

    init(_ words: ArraySlice<String>) throws {
        var rest = words
        while let word = rest.popFirst() {
            guard word.hasPrefix("--"), let value = rest.popFirst() else {
                throw SeedError(message: "\(word) is not an option, or does not have a value.\n\(Seed.help)")
            }
            values[String(word.dropFirst(2))] = value
        }
    }

    func text(_ name: String) -> String? { values[name] }

    func number(_ name: String) throws -> Int64? {
        guard let text = values[name] else { return nil }
        guard let number = Int64(text) else { throw SeedError(message: "--\(name) takes a number, not \(text)") }
        return number
    }

    func required<Value>(_ name: String, _ read: (String) throws -> Value?) throws -> Value {
        guard let value = try read(name) else { throw SeedError(message: "--\(name) is missing.\n\(Seed.help)") }
        return value
    }
}
