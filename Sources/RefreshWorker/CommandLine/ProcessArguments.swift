/// The words that the process was started with.
enum ProcessArguments {
    /// The arguments after the program's name.
    ///
    /// Swift's runtime finds them next to the environment on the stack, and finds none when a preloaded library has moved
    /// the environment before the program began. A command that then ran as the daemon would be the wrong one, so the
    /// kernel is asked instead (https://man7.org/linux/man-pages/man5/proc_pid_cmdline.5.html).
    static func read() throws -> [String] {
        let known = CommandLine.arguments
        guard known.isEmpty else { return Array(known.dropFirst()) }
        let words = try FileReader.system.read("/proc/self/cmdline").split(
            separator: 0,
            omittingEmptySubsequences: false
        )
        // Each word ends in a zero, so nothing follows the last one.
        return words.dropFirst().dropLast().map { String(decoding: $0, as: UTF8.self) }
    }
}
