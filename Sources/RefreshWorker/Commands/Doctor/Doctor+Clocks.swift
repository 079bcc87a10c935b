import Base

/// The checks of the clocks, which do not need the network.
extension Doctor {
    /// The years 2025 to 2099: the program is not older, and is not expected to run later.
    private static let plausibleYears =
        Timestamp(secondsSince1970: 1_735_689_600)..<Timestamp(secondsSince1970: 4_102_444_800)
    /// The tolerated difference between two clocks. With a larger one, expired tokens count as valid or valid ones as
    /// expired.
    static let tolerableSkew: Duration = .seconds(60)
    static let clockAdvice = "set it, and synchronize it by NTP (timedatectl set-ntp true)"
    private static let bootIDFile = "/proc/sys/kernel/random/boot_id"

    func clockChecks() async throws -> [Check] {
        let lastWrite = try await BlockingCallQueue.files.run { try lastWriteTime() }
        return [Self.clock(now: context.time.now, lastWrite: lastWrite).named("clock"), bootID]
    }

    /// Checks the wall clock alone and against the last write: a file cannot have been written in the future.
    static func clock(now: Timestamp, lastWrite: Timestamp?) -> Check {
        guard plausibleYears.contains(now) else {
            return .fault("the clock says \(now.iso8601Seconds)", advice: clockAdvice)
        }
        if let lastWrite, lastWrite - now > tolerableSkew {
            let finding = """
                the clock says \(now.iso8601Seconds), but the database was written at \(lastWrite.iso8601Seconds): it was \
                ahead then or is behind now
                """
            return .warning(finding, advice: clockAdvice)
        }
        return .ok(now.iso8601Seconds)
    }

    /// The time of the last write to the database or its log.
    private func lastWriteTime() throws -> Timestamp? {
        guard let path = configuration.database.file else { return nil }
        return try [path, path + "-wal"].compactMap { try FileStatus.of($0)?.modifiedAt }.max()
    }

    private var bootID: Check {
        check("boot id") {
            do throws(InputError) {
                let id = try context.inputs.files.read(Self.bootIDFile)
                return id.count > 1
                    ? .ok("can be read; leases use it") : .fault("\(Self.bootIDFile) is empty", advice: "mount /proc")
            } catch {
                return .fault("\(Self.bootIDFile) \(error.message), and leases use it", advice: "mount /proc")
            }
        }
    }
}
