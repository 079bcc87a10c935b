import Base
import Foundation
import GoogleOAuth
import Storage
import Synchronization
import Telemetry
import Testing

@testable import Crypto
@testable import RefreshWorker
@testable import Scheduler

@Suite("A worker's key ring", .timeLimit(.minutes(10)))
struct KeyRingMonitorTests {
    @Test("is not replaced by another valid one at run time, and the alarm stays until the right one returns")
    func foreignFile() async throws {
        try await OperatorFixture.with { fixture in
            let right = try KeyRingFile.generate(path: fixture.keyFile)
            let worker = try await HeartbeatWorker(fixture)
            try await worker.report()
            try FileManager.default.moveItem(atPath: fixture.keyFile, toPath: fixture.path("kept"))
            _ = try KeyRingFile.generate(path: fixture.keyFile)
            for _ in 0..<3 {
                try await worker.report()
                #expect(worker.vault.ring.current.sealingKeyID == right)
                #expect(worker.vault.ring.rejection?.contains("continues with the keys in memory") == true)
                #expect(worker.vault.ring.isComplete)
            }
            #expect(worker.alarms == ["key_ring_refused"])
            try FileManager.default.removeItem(atPath: fixture.keyFile)
            try FileManager.default.moveItem(atPath: fixture.path("kept"), toPath: fixture.keyFile)
            try await worker.report()
            #expect(worker.vault.ring.rejection == nil)
            await worker.store.close()
        }
    }

    @Test("stays in use when its file disappears, with an alarm until the file is back")
    func missingFile() async throws {
        try await OperatorFixture.with { fixture in
            let right = try KeyRingFile.generate(path: fixture.keyFile)
            let worker = try await HeartbeatWorker(fixture)
            try await worker.report()
            try FileManager.default.moveItem(atPath: fixture.keyFile, toPath: fixture.path("kept"))
            for _ in 0..<3 { try await worker.report() }
            #expect(worker.vault.ring.current.sealingKeyID == right)
            #expect(worker.vault.ring.isComplete)
            #expect(worker.alarms == ["key_file_unreadable"])
            #expect(worker.vault.ring.fileProblem?.contains("a restart would fail") == true)
            try FileManager.default.moveItem(atPath: fixture.path("kept"), toPath: fixture.keyFile)
            try await worker.report()
            #expect(worker.vault.ring.fileProblem == nil)
            #expect(worker.currentAlarms == [])
            await worker.store.close()
        }
    }

    @Test("keeps a key that stored tokens need, and drops an unneeded one")
    func cutFile() async throws {
        try await OperatorFixture.with { fixture in
            let old = try KeyRingFile.generate(path: fixture.keyFile)
            let worker = try await HeartbeatWorker(fixture)
            try await fixture.insert(1...1, sealedBy: worker.vault, into: worker.store)
            try await worker.report()
            let new = try KeyRingFile.addPending(path: fixture.keyFile)
            try KeyRingFile.promote(new, path: fixture.keyFile)
            try await worker.report()
            #expect(worker.vault.ring.current.sealingKeyID == new)
            try KeyRingFile.remove(old, path: fixture.keyFile)
            try await worker.report()
            #expect(worker.vault.ring.current.keyIDs == [new, old])
            #expect(worker.alarms == ["key_ring_refused"])
            let grant = try #require(try await worker.store.grant(GrantID(rawValue: 1)))
            #expect(try worker.vault.openRefreshToken(of: grant) != nil)
            var resealed = grant
            resealed.reseal(
                refreshToken: try worker.vault.seal(refreshToken: Secret("refresh"), for: grant.id),
                accessToken: try worker.vault.seal(accessToken: Secret("access"), for: grant.id)
            )
            let last = resealed
            try await worker.store.transact { try $0.update(last) }
            for _ in 0..<14 { try await worker.report() }
            #expect(worker.vault.ring.current.keyIDs == [new])
            #expect(worker.vault.ring.rejection == nil)
            await worker.store.close()
        }
    }

    @Test("ends the start with exit code 78 if it did not seal the stored tokens")
    func foreignStart() async throws {
        try await OperatorFixture.with { fixture in
            _ = try KeyRingFile.generate(path: fixture.keyFile)
            let right = try await HeartbeatWorker(fixture)
            try await fixture.insert(1...1, sealedBy: right.vault, into: right.store)
            try await right.report()
            try await right.store.removeWorker("right")
            try FileManager.default.removeItem(atPath: fixture.keyFile)
            _ = try KeyRingFile.generate(path: fixture.keyFile)
            let foreign = try await HeartbeatWorker(fixture, named: "foreign")
            let failure = await #expect(throws: CommandError.self) { try await foreign.report() }
            #expect(failure?.exitCode == .configuration)
            #expect(failure?.message.contains("is not the one that sealed the tokens of this database") == true)
            #expect(try await foreign.store.liveWorkers().map(\.id) == [])
            await right.store.close()
            await foreign.store.close()
        }
    }

    @Test("may be a new one while no token is sealed")
    func emptyStore() async throws {
        try await OperatorFixture.with { fixture in
            _ = try KeyRingFile.generate(path: fixture.keyFile)
            let first = try await HeartbeatWorker(fixture)
            try await first.report()
            try await first.store.removeWorker("right")
            try FileManager.default.removeItem(atPath: fixture.keyFile)
            let new = try KeyRingFile.generate(path: fixture.keyFile)
            let second = try await HeartbeatWorker(fixture, named: "second")
            try await second.report()
            #expect(second.vault.ring.current.sealingKeyID == new)
            await first.store.close()
            await second.store.close()
        }
    }

    @Test("makes the worker stand by while it lacks another worker's sealing key")
    func lackingKey() async throws {
        try await OperatorFixture.with { fixture in
            _ = try KeyRingFile.generate(path: fixture.keyFile)
            try FileManager.default.copyItem(atPath: fixture.keyFile, toPath: fixture.path("stale"))
            let lacking = try await HeartbeatWorker(fixture, named: "lacking", keyFile: fixture.path("stale"))
            try await lacking.report()
            #expect(lacking.vault.ring.isComplete)

            let new = try KeyRingFile.addPending(path: fixture.keyFile)
            try KeyRingFile.promote(new, path: fixture.keyFile)
            let holder = try await HeartbeatWorker(fixture, named: "holder")
            try await holder.report()
            try await lacking.report()
            #expect(!lacking.vault.ring.isComplete)
            #expect(lacking.alarms == ["key_ring_lacks_keys"])
            #expect(throws: StoreError.self) { try lacking.vault.checkMaySeal() }
            let reports = try await holder.store.liveWorkers()
            #expect(reports.map(\.isRefreshing) == [true, false], "holder, lacking")

            try FileManager.default.removeItem(atPath: fixture.path("stale"))
            try FileManager.default.copyItem(atPath: fixture.keyFile, toPath: fixture.path("stale"))
            try await lacking.report()
            #expect(lacking.vault.ring.isComplete)
            #expect(try await holder.store.liveWorkers().map(\.isRefreshing) == [true, true])
            await lacking.store.close()
            await holder.store.close()
        }
    }

    @Test("leaves a binding key that it lacks recorded while another worker holds it, and the worker stands by")
    func lackingBindingKey() async throws {
        try await OperatorFixture.with { fixture in
            _ = try KeyRingFile.generate(path: fixture.keyFile)
            try FileManager.default.copyItem(atPath: fixture.keyFile, toPath: fixture.path("stale"))
            let binding = try KeyRingFile.addBinding(path: fixture.keyFile)
            let holder = try await HeartbeatWorker(fixture, named: "holder")
            try await holder.report()
            // As before the exchange of a code: no stored token is bound to the key yet.
            try await holder.store.recordKey(binding, of: holder.vault.ring.current)
            let lacking = try await HeartbeatWorker(fixture, named: "lacking", keyFile: fixture.path("stale"))
            for _ in 0..<14 { try await lacking.report() }
            #expect(try await lacking.store.recordedKeyIDs().contains(binding))
            #expect(!lacking.vault.ring.isComplete)
            #expect(lacking.alarms == ["key_ring_lacks_keys"])

            // Nobody holds the key any more, and no token needs it.
            await holder.stop()
            for _ in 0..<14 { try await lacking.report() }
            #expect(try await !lacking.store.recordedKeyIDs().contains(binding))
            #expect(lacking.vault.ring.isComplete)
            await lacking.store.close()
        }
    }

    @Test("is not replaced by a file without a binding key of this worker, to which a token might just be bound")
    func fileWithoutBindingKey() async throws {
        try await OperatorFixture.with { fixture in
            _ = try KeyRingFile.generate(path: fixture.keyFile)
            try FileManager.default.copyItem(atPath: fixture.keyFile, toPath: fixture.path("former"))
            let binding = try KeyRingFile.addBinding(path: fixture.keyFile)
            let worker = try await HeartbeatWorker(fixture)
            try await worker.report()
            // As before the exchange of a code: no stored token is bound to the key yet.
            try await worker.store.recordKey(binding, of: worker.vault.ring.current)
            try FileManager.default.removeItem(atPath: fixture.keyFile)
            try FileManager.default.copyItem(atPath: fixture.path("former"), toPath: fixture.keyFile)
            for _ in 0..<14 { try await worker.report() }
            #expect(worker.vault.ring.current.keyIDs.contains(binding))
            #expect(try await worker.store.recordedKeyIDs().contains(binding))
            #expect(worker.alarms == ["key_ring_refused"])
            await worker.store.close()
        }
    }

    @Test("drops an unneeded sealing key that was cut from the file of two workers, although both still hold it")
    func cutFileOfTwo() async throws {
        try await OperatorFixture.with { fixture in
            let old = try KeyRingFile.generate(path: fixture.keyFile)
            let workers = [
                try await HeartbeatWorker(fixture, named: "a"), try await HeartbeatWorker(fixture, named: "b"),
            ]
            for worker in workers { try await worker.report() }
            let new = try KeyRingFile.addPending(path: fixture.keyFile)
            try KeyRingFile.promote(new, path: fixture.keyFile)
            for worker in workers { try await worker.report() }
            try KeyRingFile.remove(old, path: fixture.keyFile)
            for worker in workers { try await worker.report() }
            for worker in workers {
                #expect(worker.vault.ring.current.keyIDs == [new])
                #expect(worker.vault.ring.rejection == nil)
                await worker.store.close()
            }
        }
    }

    @Test("a command whose ring lacks a key ends with exit code 78")
    func lackingCommand() async throws {
        try await OperatorFixture.with { fixture in
            _ = try KeyRingFile.generate(path: fixture.keyFile)
            try FileManager.default.copyItem(atPath: fixture.keyFile, toPath: fixture.path("stale"))
            let new = try KeyRingFile.addPending(path: fixture.keyFile)
            try KeyRingFile.promote(new, path: fixture.keyFile)
            let holder = try await HeartbeatWorker(fixture, named: "holder")
            try await fixture.insert(1...1, sealedBy: holder.vault, into: holder.store)
            try await holder.report()
            let context = try fixture.context([(.keyFile, fixture.path("stale"))])
            let failure = await #expect(throws: CommandError.self) {
                _ = try await context.run(["token", "user 1", "--min-ttl", "0"])
            }
            #expect(failure?.exitCode == .configuration)
            await holder.store.close()
        }
    }

    @Test("a command that fails does not count as a live worker afterwards")
    func failedCommand() async throws {
        try await OperatorFixture.with { fixture in
            _ = try KeyRingFile.generate(path: fixture.keyFile)
            let (store, vault) = (try fixture.openStore(), try fixture.openVault())
            let context = try fixture.context()
            let failure = CommandError(.inputOutput, "the disk is full")
            await #expect(throws: failure) {
                try await WorkerHeartbeat(of: context, in: store, vault: vault).reporting {
                    #expect(try await store.liveWorkers().count == 1)
                    throw failure
                }
            }
            await #expect(throws: StoreError.self, "it is closed") { try await store.liveWorkers() }
            let next = try fixture.openStore()
            #expect(try await next.liveWorkers().isEmpty)
            await next.close()
        }
    }

    @Test("an unknown key stops the refreshes until it is known that no worker has it")
    func doubt() async throws {
        try await OperatorFixture.with { fixture in
            _ = try KeyRingFile.generate(path: fixture.keyFile)
            let worker = try await HeartbeatWorker(fixture)
            try await worker.report()
            let unknown = try RingKey.random().id
            #expect(worker.vault.ring.reportMissing(unknown))
            #expect(!worker.vault.ring.isComplete)
            try await worker.report()
            #expect(worker.vault.ring.isComplete)
            #expect(!worker.vault.ring.reportMissing(unknown), "the key that no worker has is not recorded as lost")
            await worker.store.close()
        }
    }

    @Test("a command gives up a lost key")
    func lostKey() async throws {
        try await OperatorFixture.with { fixture in
            let old = try KeyRingFile.generate(path: fixture.keyFile)
            let worker = try await HeartbeatWorker(fixture)
            try await fixture.insert(1...1, sealedBy: worker.vault, into: worker.store)
            let new = try KeyRingFile.addPending(path: fixture.keyFile)
            try KeyRingFile.promote(new, path: fixture.keyFile)
            try await worker.report()
            // A worker that is still live, and reports the key, has it: then the key is not lost.
            await worker.stop()
            try KeyRingFile.remove(old, path: fixture.keyFile)
            let context = try fixture.context()
            let before = await #expect(throws: CommandError.self) {
                _ = try await context.run(["token", "user 1", "--min-ttl", "0"])
            }
            #expect(before?.message.contains("keys retire --lost") == true)
            #expect(try await context.run(["keys", "retire", "\(old)", "--lost"]) == .success)
            let after = CommandError(VendingError.unreadable(.unknownKey(old)), ofUser: "user 1")
            await #expect(throws: after) {
                _ = try await context.run(["token", "user 1", "--min-ttl", "0"])
            }
        }
    }
}
