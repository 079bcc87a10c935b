import TestSupport

@testable import Base
@testable import Crypto
@testable import RefreshWorker
@testable import Scheduler
@testable import Storage

/// How long data is kept, the clock of deletions, sealing and the SQLite file.
extension DocumentedNumber {
    static var storage: [DocumentedNumber] {
        var numbers: [DocumentedNumber] = []
        numbers.add(
            "docs/guarantees.md",
            "nothing is claimed for \(Lease.span.spelled)",
            "[less than \(DeletionClock.believedRestart.minutes) minutes](architecture.md#clocks)",
            "missed within \(Worker.tallyInterval.spelled)",
            "a key retired less than \(KeyRingSummary.Entry.retirement.spelled) ago",
            "outlives the deletion by \(AccountDeletion.minimumTombstone.spelled)",
            "cannot be reached for \(RefreshRules.maximumRevocation.spelled)"
        )
        numbers.add(
            "docs/key-command.md",
            "at most \(ExternalCommand.Limits().output.grouped) bytes. It is never logged",
            "After \(ExternalCommand.Limits().time.spelled) the program and its children are killed",
            "within \(CommandedKeyRing.interval.spelled) after the key file has changed",
            "runs again after \(KeyCommandSchedule.firstPause.seconds) seconds, and then up to every "
                + "\(KeyCommandSchedule.maximumPause.spelled)",
            "up to every \(KeyCommandWait.maximumPause.spelled)",
            "the last \(ShownErrorOutput.maximumLength) characters",
            "A rotation waits \(KeyRotation.workerTimeout.spelled) for them"
        )
        numbers.add(
            "docs/architecture.md",
            "up to \(DeletionClock.believedRestart.minutes) minutes are believed",
            "of less than \(DeletionClock.believedRestart.minutes) minutes is believed"
        )
        numbers.add(
            "docs/operate.md",
            "after \(RefreshRules.maximumRevocation.spelled) of trying",
            "after \(AccountDeletion.minimumTombstone.spelled), and not before the last accepted token has expired",
            "after \(Retention.notices.spelled)",
            "the emptied grant and its last \(Retention.eventsPerGrant.asWord) changes",
            "hashes of the last \(Retention.leftTokensPerGrant.asWord) refresh tokens that the user replaced or ended",
            "\(Worker.firstForgetting.spelled) after its start and then daily",
            "| 1 | version: \(SealedSecret.version) |",
            "| 1 | length of the key id: \(KeyID.length) |",
            "| \(KeyID.length) | the key id, in ASCII |",
            "| \(CipherContext.nonceLength) | a random nonce |",
            "| \(CipherContext.tagLength) | its tag |",
            "\(checkpointedLog) MB, and \(SQLiteConnection.logSizeLimit >> 20) MB after many changes at once"
        )
        numbers.add(
            "docs/runbook.md",
            "moved by more than \(DeletionClock.tolerableLag.spelled) beyond the time that is known to have passed",
            "at most \(Retention.notices.spelled) back"
        )
        return numbers
    }

    /// The log after which a checkpoint begins, in MB: pages of 4 KiB.
    private static let checkpointedLog = LogState.checkpointLength * 4096 / 1_000_000
}
