extension String {
    /// The text quoted as one word of a shell command, so that users can copy the command from a message.
    package var shellWord: String {
        let plain = Set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._/:,@%+=")
        guard isEmpty || !allSatisfy(plain.contains) else { return self }
        return "'" + replacing("'", with: "'\\''") + "'"
    }
}
