import Base
import Crypto
import Testing

@testable import Storage

@Suite("The list of the columns of grants", .timeLimit(.minutes(10)))
struct GrantTableTests {
    /// The columns that an update may change.
    static let changeable = Grant.readColumns.without("id", "user_id", "connection", "created_at").columns.map(\.name)

    @Test("Every property of a grant has a column")
    func complete() throws {
        let (full, plain) = (try Sample.fullGrant(1), Leaves(of: try Sample.grant(1)).values)
        // A new property needs a value in `Sample.fullGrant` that differs from that of a new grant.
        let unset = Leaves(of: full).values.filter { plain[$0.key] == $0.value }
        #expect(unset.keys.sorted() == ["connection", "createdAt", "id", "userID"])
        var row = RecordedRow(of: full)
        #expect(try Grant.read(&row) == full)
        #expect(row.isAtEnd)
    }

    @Test("The claims of the last eight rotations are kept, in their order, and read back")
    func rotationClaims() throws {
        var grant = try Sample.fullGrant(1)
        for claim in [7, 1, 2, 3, 1, 4, 5, 6, .max, -1] as [Int64] { grant.recordRotation(by: claim) }
        #expect(grant.rotationClaims == [1 << 40, 7, 2, 3, 4, 5, 6, -1])
        var row = RecordedRow(of: grant)
        let place = try #require(Grant.readColumns.columns.firstIndex { $0.name == "rotation_claims" })
        guard case .bytes(let bytes?) = row.values[place] else { throw CancellationError() }
        row.values[place] = .bytes(bytes + [1, 2, 3])
        #expect(try Grant.read(&row) == grant)
    }

    @Test("Every column counts in the checksum of a copy")
    func digest() throws {
        let full = try Sample.fullGrant(1)
        var digests = [try digest(of: full)]
        for column in Grant.readColumns.columns.map(\.name) {
            let changed = try full.changed(in: column)
            #expect(changed != full, "\(column)")
            digests.append(try digest(of: changed))
        }
        #expect(Set(digests).count == Grant.readColumns.columns.count + 1)
    }

    @Test("A change of one column is stored, with every other column as it was", arguments: StoreKind.allCases)
    func update(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            let full = try Sample.fullGrant(1)
            try await store.add([full])
            for column in Self.changeable {
                let changed = try full.changed(in: column)
                try await store.transact { try $0.update(changed) }
                #expect(try await store.grant(full.id) == changed, "\(column)")
                try await store.transact { try $0.update(full) }
                #expect(try await store.grant(full.id) == full, "\(column)")
            }
        }
    }

    @Test("A column arrives in a copy", arguments: StorePair.allCases)
    func copy(pair: StorePair) async throws {
        try await StorePair.with(pair) { stores in
            let source = try await stores.open("source")
            let target = try await stores.open("target")
            var grants: [Grant] = []
            for (number, column) in Grant.readColumns.columns.map(\.name).enumerated() {
                grants.append(try Sample.fullGrant(10 * Int64(number) + 10).changed(in: column))
            }
            try await source.add(grants)
            _ = try await StoreCopy(from: source, to: target, at: "elsewhere", pause: noPause).run()
            for grant in grants { #expect(try await target.grant(grant.id)?.withoutLease == grant.withoutLease) }
            for store in [source, target] { await store.close() }
        }
    }

    private func digest(of grant: Grant) throws -> ArchiveDigest {
        ArchiveDigest(of: [ArchiveRecord(kind: .grant, values: Grant.table.values(of: grant))])
    }
}

/// The values of a row, read from memory.
private struct RecordedRow: SQLRow {
    var values: [SQLValue]
    private var place = 0

    init(of grant: Grant) {
        values = Grant.readColumns.values(of: grant)
        guard let lease = grant.lease else { return }
        values += [.text(lease.owner), .integer(lease.claim), .text(lease.epoch)]
        values.append(.integer(lease.until.milliseconds))
    }

    var isAtEnd: Bool { place == values.count }

    mutating func optionalInteger() -> Int64? {
        if case .integer(let value) = next() { value } else { nil }
    }

    mutating func optionalText() -> String? {
        if case .text(let value) = next() { value } else { nil }
    }

    mutating func optionalBlob() -> [UInt8]? {
        if case .bytes(let value) = next() { value } else { nil }
    }

    mutating func optionalFlag() -> Bool? {
        if case .flag(let value) = next() { value } else { nil }
    }

    private mutating func next() -> SQLValue? {
        defer { place += 1 }
        return place < values.count ? values[place] : nil
    }
}

extension Grant {
    fileprivate var withoutLease: Grant {
        var grant = self
        grant.setLease(nil)
        return grant
    }

    /// Returns the grant with another valid value in one column.
    fileprivate func changed(in column: String) throws -> Grant {
        var row = RecordedRow(of: self)
        let place = try #require(Grant.readColumns.columns.firstIndex { $0.name == column })
        let value: SQLValue =
            switch row.values[place] {
            case .integer(let value): .integer(value.map { $0 + 1 })
            case .flag(let value): .flag(value.map { !$0 })
            case .text(let value):
                switch column {
                case "state": .text(GrantState.suspended.rawValue)
                case "binding_key": .text("0000000c")
                default: .text(value.map { $0 + "x" })
                }
            case .bytes(let value): .bytes(value.map { $0.dropLast() + [($0.last ?? 0) ^ 1] })
            case .array: throw CancellationError()
            }
        try #require(value != row.values[place], "\(column) is not set")
        row.values[place] = value
        return try Grant.read(&row)
    }
}

/// The values of all properties of a grant and of its parts, by path.
private struct Leaves {
    private(set) var values: [String: AnyHashable] = [:]

    init(of grant: Grant) {
        add(grant, at: "")
    }

    private mutating func add(_ value: Any, at path: String) {
        for child in Mirror(reflecting: value).children {
            let path = path + (path.isEmpty ? "" : ".") + (child.label ?? "")
            var value = child.value
            let mirror = Mirror(reflecting: value)
            if mirror.displayStyle == .optional, let content = mirror.children.first { value = content.value }
            switch value {
            case is Grant.Owner, is Grant.AccessToken, is Grant.RefreshToken, is TokenMarks: add(value, at: path)
            case let value as AnyHashable: values[path] = value
            default: Issue.record("\(path) cannot be compared")
            }
        }
    }
}
