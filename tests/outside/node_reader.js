// Unpacks tar archives with node-tar, the reader of npm: each line of input is a path and a folder,
// with a tab between; each line of output says ok or refused.
const readline = require('readline');
const tar = require('tar');

readline.createInterface({ input: process.stdin }).on('line', (line) => {
  const [file, cwd] = line.split('\t');
  let refused = false;
  try {
    tar.x({ file, cwd, sync: true, onwarn: (code) => { refused = refused || code !== 'TAR_ENTRY_INFO'; } });
  } catch (e) {
    refused = true;
  }
  console.log(refused ? 'refused' : 'ok');
});
