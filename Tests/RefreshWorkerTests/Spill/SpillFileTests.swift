import Crypto
import Foundation
import Glibc
import Status
import Storage
import TestSupport
import Testing

@testable import Base
@testable import RefreshWorker
@testable import Scheduler

@Suite("The spill file", .timeLimit(.minutes(10)))
struct SpillFileTests {
    /// Makes a database with the grants of three users, each refreshed and rotated by a worker that could not store the
    /// result.
    private func withFindings(
        _ body: (OperatorFixture, CommandContext, TokenVault, [RefreshResult]) async throws -> Void
    ) async throws {
        try await OperatorFixture.with { fixture in
            _ = try KeyRingFile.generate(path: fixture.keyFile)
            let vault = try fixture.openVault()
            let store = try fixture.openStore()
            try await fixture.insert(1...3, sealedBy: vault, into: store)
            await store.close()
            let findings = try (1...3 as ClosedRange<Int64>).map { try finding($0, vault, at: fixture.time.now) }
            try await body(fixture, try fixture.context(), vault, findings)
        }
    }

    private func finding(_ number: Int64, _ vault: TokenVault, at now: Timestamp) throws -> RefreshResult {
        let id = GrantID(rawValue: number)
        let tokens = RefreshedTokens(
            accessToken: Grant.AccessToken(
                sealed: try vault.seal(accessToken: Secret("new access \(number)"), for: id),
                obtainedAt: now,
                expiresAt: now + .seconds(3600)
            ),
            rotated: try vault.seal(refreshToken: Secret("rotated \(number)"), for: id)
        )
        let claim = RefreshClaim(grant: id, clientID: "client", number: 7, generation: 1)
        return RefreshResult(claim: claim, answer: .granted(tokens))
    }

    private func spill(
        _ findings: [RefreshResult],
        _ fixture: OperatorFixture,
        _ context: CommandContext,
        _ vault: TokenVault
    ) async throws -> String {
        let spill = try await fixture.openSpill(context, vault: vault)
        for finding in findings { try await spill.save([finding]) }
        return try #require(spill.path)
    }

    private func storedTokens(_ fixture: OperatorFixture, _ vault: TokenVault) async throws -> [String?] {
        let store = try fixture.openStore()
        let grants = try await store.grants(after: nil, in: nil, atMost: 10)
        await store.close()
        return try grants.map { try vault.openRefreshToken(of: $0)?.reveal() }
    }

    @Test("is private, and the next command that opens the database recovers and removes it")
    func recovered() async throws {
        try await withFindings { fixture, context, vault, findings in
            let path = try await spill(findings, fixture, context, vault)
            #expect(try FileStatus.of(path)?.mode == "0600")
            _ = try await context.run(["status", "--json"])
            #expect(try await storedTokens(fixture, vault) == ["rotated 1", "rotated 2", "rotated 3"])
            #expect(try FileStatus.of(path) == nil)
            #expect(try fixture.names.filter { $0.contains("set-aside") } == [])
        }
    }

    @Test("is written although no descriptor is free")
    func noDescriptor() async {
        await #expect(processExitsWith: .exitCode(0)) {
            try await SpillFileTests().withFindings { fixture, context, vault, findings in
                let spill = try await fixture.openSpill(context, vault: vault)
                let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
                var before = rlimit()
                getrlimit(resource, &before)
                var few = rlimit(rlim_cur: 256, rlim_max: before.rlim_max)
                setrlimit(resource, &few)
                while open("/dev/null", O_RDONLY) >= 0 {}
                try await spill.save(findings)
                #expect(spill.path != nil)
                setrlimit(resource, &before)
            }
        }
    }

    @Test("uses the disk space of the reserve, which is refilled")
    func reserve() async throws {
        try await withFindings { fixture, context, vault, findings in
            let first = try await fixture.openSpill(context, vault: vault)
            try await first.keepReserve()
            let reserve = first.location.reserve
            #expect(try FileStatus.of(reserve)?.size == 4 << 20)
            #expect(await first.freeReserve())
            #expect(try FileStatus.of(reserve)?.size == 2 << 20)
            #expect(await first.freeReserve() == false, "the half for the spill file was freed too")
            try await first.save(findings)
            #expect(try FileStatus.of(reserve) == nil)
            let path = try #require(first.path)
            #expect(try FileStatus.of(path)?.size == 2 << 20)
            try await first.keepReserve()
            #expect(try FileStatus.of(reserve)?.size == 4 << 20)
        }
    }

    @Test("is written without the reserve while another process uses it, and does not truncate it")
    func reserveInUse() async throws {
        try await withFindings { fixture, context, vault, findings in
            let spill = try await fixture.openSpill(context, vault: vault)
            try await spill.keepReserve()
            let other = try #require(try SpillFile.openIfThere(spill.location.reserve))
            #expect(try other.tryLock())
            #expect(await spill.freeReserve() == false)
            #expect(try other.size == 4 << 20)
            try await spill.save(findings)
            #expect(try SpilledFile.list(in: spill.location).map(\.results) == [3])
            #expect(other.isInPlace)
        }
    }

    @Test("is written even if the reserve cannot be opened, such as one of another user")
    func unusableReserve() async throws {
        try await withFindings { fixture, context, vault, findings in
            let spill = try await fixture.openSpill(context, vault: vault)
            try FileManager.default.createDirectory(
                atPath: spill.location.reserve,
                withIntermediateDirectories: false
            )
            #expect(await spill.freeReserve() == false)
            try await spill.save(findings)
            #expect(try SpilledFile.list(in: spill.location).map(\.results) == [3])
        }
    }

    @Test("can be written after a failed try, with and without a reserve", arguments: [true, false])
    func failedOnce(hasReserve: Bool) async throws {
        try await withFindings { fixture, context, vault, findings in
            // The process that wrote the file must have ended before another one recovers it.
            do {
                let spill = try await fixture.openSpill(context, vault: vault)
                if hasReserve { try await spill.keepReserve() }
                // A folder in place of the file makes the rename fail.
                let target = spill.location.unsaved(by: context.workerName)
                try FileManager.default.createDirectory(atPath: target, withIntermediateDirectories: false)
                await #expect(throws: FileError.self) { try await spill.save(Array(findings.prefix(1))) }
                #expect(spill.path == nil)
                try FileManager.default.removeItem(atPath: target)
                try await spill.save(Array(findings.dropFirst()))
            }
            _ = try await context.run(["status", "--json"])
            #expect(try await storedTokens(fixture, vault) == ["rotated 1", "rotated 2", "rotated 3"])
        }
    }

    @Test("is set aside if it is damaged, and its readable results are stored", arguments: [5, 65, 700])
    func damaged(place: Int) async throws {
        try await withFindings { fixture, context, vault, findings in
            let path = try await spill(findings, fixture, context, vault)
            let file = try #require(try SpillFile.openIfThere(path))
            var bytes = try #require(try file.read(limit: 1 << 20))
            bytes[place] ^= 1
            try file.write(bytes, at: 0)
            _ = try await context.run(["status", "--json"])
            #expect(try FileStatus.of(path) == nil)
            let aside = SpillLocation.setAside(path)
            #expect(try FileStatus.of(aside)?.size == Int64(bytes.count))
            let rotated = try await storedTokens(fixture, vault).count { $0?.hasPrefix("rotated") ?? false }
            #expect(rotated < 3 && (place < 100 || rotated > 0))
            // After a repair the file can be recovered by hand.
            bytes[place] ^= 1
            let mended = try #require(try SpillFile.openIfThere(aside))
            try mended.write(bytes, at: 0)
        }
    }

    @Test("is set aside if its end is missing", arguments: [true, false])
    func incomplete(keepsSize: Bool) async throws {
        try await withFindings { fixture, context, vault, findings in
            let path = try await spill(findings, fixture, context, vault)
            let file = try #require(try SpillFile.openIfThere(path))
            let bytes = try #require(try file.read(limit: 1 << 20))
            let content = SpillFormat.read(bytes)
            #expect(content.results.count == 3 && !content.isDamaged)
            let head = SpillFormat.head(of: try #require(content.database))
            let kept = head + SpillFormat.bytes(of: Array(content.results.prefix(2)))
            if keepsSize {
                try file.write([UInt8](repeating: 0, count: bytes.count - kept.count), at: kept.count)
            } else {
                try file.truncate(to: kept.count)
            }
            _ = try await context.run(["status", "--json"])
            #expect(try FileStatus.of(SpillLocation.setAside(path)) != nil)
            #expect(try await storedTokens(fixture, vault).count { $0?.hasPrefix("rotated") ?? false } == 2)
        }
    }

    @Test("is set aside if one of its grants is missing, as in a backup from before that user signed up")
    func missingGrant() async throws {
        try await withFindings { fixture, context, vault, findings in
            let newer = try finding(4, vault, at: fixture.time.now)
            let path = try await spill(findings + [newer], fixture, context, vault)
            _ = try await context.run(["status", "--json"])
            #expect(try await storedTokens(fixture, vault) == ["rotated 1", "rotated 2", "rotated 3"])
            #expect(try FileStatus.of(SpillLocation.setAside(path)) != nil)
        }
    }

    @Test("is recovered before a backup, so that the backup has its tokens")
    func backup() async throws {
        try await withFindings { fixture, context, vault, findings in
            _ = try await spill(findings, fixture, context, vault)
            let copy = fixture.path("copy.sqlite")
            #expect(try await context.run(["backup", copy]) == .success)
            let store = try SQLiteStore(path: copy, timeSource: fixture.time)
            let grants = try await store.grants(after: nil, in: nil, atMost: 10)
            await store.close()
            #expect(
                try grants.map { try vault.openRefreshToken(of: $0)?.reveal() } == [
                    "rotated 1", "rotated 2", "rotated 3",
                ]
            )
        }
    }

    @Test("stays if it lies beside another database, and can be recovered in its own by hand")
    func foreign() async throws {
        try await withFindings { fixture, context, vault, findings in
            let path = try await spill(findings, fixture, context, vault)
            let other = try fixture.context([(.database, fixture.path("other.sqlite"))])
            let store = try SQLiteStore(path: fixture.path("other.sqlite"), timeSource: fixture.time)
            await store.close()
            let stray = fixture.path("other.sqlite.unsaved-1-a")
            #expect(try SpillFile.rename(path, to: stray))
            _ = try await other.run(["status", "--json"])
            #expect(try FileStatus.of(stray) != nil)
            #expect(try await context.run(["results", "recover", stray]) == .success)
            #expect(try FileStatus.of(stray) == nil)
            #expect(try await storedTokens(fixture, vault) == ["rotated 1", "rotated 2", "rotated 3"])
        }
    }

    @Test("is listed by doctor with the command that recovers it, and by status until it is recovered")
    func listed() async throws {
        try await withFindings { fixture, context, vault, findings in
            let doctor = Doctor(context: context)
            #expect(doctor.spillChecks().map(\.severity) == [.ok])
            try SpillFile.create(fixture.path("grants.sqlite.writing-2-b")).allocate(4096)
            #expect(doctor.spillChecks().map(\.severity) == [.ok], "empty reserved space counts as a result")
            let path = try await spill(findings, fixture, context, vault)
            let waiting = doctor.spillChecks()
            #expect(waiting.map(\.severity) == [.warning])
            #expect(waiting.first?.text.contains("3 results in \(path)") == true)
            #expect(waiting.first?.text.contains("refresh-worker results recover \(path)") == true)
        }
    }

    @Test("is listed after it was set aside until it is recovered by hand, even without a readable key ring")
    func listedAside() async throws {
        try await withFindings { fixture, context, vault, findings in
            let path = try await spill(findings, fixture, context, vault)
            let aside = SpillLocation.setAside(path)
            #expect(try SpillFile.rename(path, to: aside))
            try fixture.write("no ring", to: "elsewhere")
            let blind = try fixture.context([(.keyFile, fixture.path("elsewhere"))])
            let snapshot = try await StatusSnapshot.read(in: blind)
            let files = try #require(snapshot.spilledFiles)
            #expect(files.map(\.path) == [aside])
            #expect(files.map(\.isSetAside) == [true])
            #expect(files.map(\.results) == [3])
            #expect(Doctor(context: blind).spillChecks().map(\.severity) == [.warning])
            #expect(try await context.run(["results", "recover", aside]) == .success)
            #expect(try await StatusSnapshot.read(in: context).spilledFiles == [])
        }
    }

    @Test("stops commands that would refresh with older tokens if it cannot be read; commands that only read continue")
    func unreadable() async throws {
        try await withFindings { fixture, context, _, _ in
            // A file of another user can be seen and not opened.
            try FileManager.default.createDirectory(
                atPath: fixture.path("grants.sqlite.unsaved-1-a"),
                withIntermediateDirectories: false
            )
            let failure = await #expect(throws: CommandError.self) {
                try await context.run(["grants", "disconnect", "user 1"])
            }
            #expect(failure?.exitCode == .inputOutput)
            #expect(failure?.message.contains("grants.sqlite.unsaved-1-a, which cannot be read") == true)
            _ = try await context.run(["status", "--json"])
        }
        // A folder that only lacks the permission to list it, such as that of the key ring, does not end the work.
        let errors = [EMFILE, EIO, EACCES].map { SystemCallError(call: "opendir", code: $0) }
        #expect(errors.map(SpillRecovery.forbidsRefreshes) == [true, true, false])
    }

    @Test("is removed if it was never written to")
    func empty() async throws {
        try await withFindings { fixture, context, _, _ in
            let path = fixture.path("grants.sqlite.writing-1-a")
            try SpillFile.create(path).allocate(4096)
            _ = try await context.run(["status", "--json"])
            #expect(try FileStatus.of(path) == nil)
        }
    }

    @Test("is the only file that a recovery by hand removes", arguments: [0, 4096])
    func noSpillFile(size: Int) async throws {
        try await withFindings { fixture, context, _, _ in
            let path = fixture.path("zeros")
            try fixture.write(String(repeating: "\0", count: size), to: "zeros")
            let failure = await #expect(throws: CommandError.self) {
                try await context.run(["results", "recover", path])
            }
            #expect(failure?.exitCode == .badData)
            #expect(try FileStatus.of(path) != nil)
        }
    }

    @Test("stays if it is of another database, whose workers share the folder, unless a person recovers it")
    func ofAnotherDatabase() async throws {
        try await withFindings { fixture, context, vault, findings in
            let path = try await spill(findings, fixture, context, vault)
            try Self.assign(path, to: .random(from: SystemRandom()))
            _ = try await context.run(["status", "--json"])
            #expect(try FileStatus.of(path) != nil)
            #expect(try await storedTokens(fixture, vault).allSatisfy { $0?.hasPrefix("rotated") == false })
            // The database was restored from a copy without the id.
            #expect(try await context.run(["results", "recover", path]) == .success)
            #expect(try await storedTokens(fixture, vault) == ["rotated 1", "rotated 2", "rotated 3"])
            #expect(try FileStatus.of(path) == nil)
        }
    }

    /// Writes the id of another database into a file, and returns it.
    @discardableResult
    static func assign(_ path: String, to other: DatabaseID) throws -> DatabaseID {
        let bytes = try #require(try SpillFile.openIfThere(path)?.read(limit: 1 << 20))
        let own = try #require(SpillFormat.read(bytes).database)
        let moved = SpillFormat.head(of: other) + bytes.dropFirst(SpillFormat.head(of: own).count)
        try #require(try SpillFile.openIfThere(path)).write(moved, at: 0)
        return other
    }

    @Test("is next to a SQLite file, and for a server in the state folder or next to the key ring")
    func places() throws {
        let file = SpillLocation(
            of: .file("/nowhere/g.sqlite"),
            keyFile: "/etc/keys",
            environment: ["STATE_DIRECTORY": "/s"]
        )
        #expect(file.unsaved(by: "1-a") == "/nowhere/g.sqlite.unsaved-1-a")
        let server = try DatabaseLocation("postgres://u@h/d")
        let state = SpillLocation(of: server, keyFile: "/etc/keys", environment: ["STATE_DIRECTORY": "/s:/t"])
        #expect(state.unsaved(by: "1-a") == "/s/refresh-worker.unsaved-1-a")
        #expect(SpillLocation(of: server, keyFile: "/etc/rw/keys", environment: [:]).folder == "/etc/rw")
        let other = SpillLocation(
            of: try DatabaseLocation("postgres://u@h/d?schema=other"),
            keyFile: "/etc/keys",
            environment: ["STATE_DIRECTORY": "/s"]
        )
        #expect(other.unsaved(by: "1-a") == "/s/refresh-worker-other.unsaved-1-a")
        #expect(!state.isSpill("refresh-worker-other.unsaved-1-a"), "another schema's results are left alone")
        #expect(SpillLocation.setAside("/s/g.sqlite.unsaved-1-a") == "/s/g.sqlite.set-aside-1-a")
        #expect(SpillLocation.setAside("/s/odd") == "/s/odd.set-aside")
    }
}
