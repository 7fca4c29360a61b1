"""Prints one greeting. Usage: greet.py NAME LANGUAGE"""
import sys

GREETINGS = {
    "english": "Hello, {}!",
    "german": "Guten Tag, {}!",
    "french": "Bonjour, {} !",
    "spanish": "¡Hola, {}!",
    "japanese": "こんにちは、{}さん!",
}


def main():
    if len(sys.argv) != 3 or sys.argv[2].lower() not in GREETINGS:
        sys.exit("usage: greet.py NAME " + "|".join(GREETINGS))
    print(GREETINGS[sys.argv[2].lower()].format(sys.argv[1]))


if __name__ == "__main__":
    main()
