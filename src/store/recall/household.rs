//! What households speak of, in eight languages: short lists of everyday words.
//!
//! They are folded as [`super::terms`] folds a text; `-` stands for any beginning or
//! ending.

/// What is asked about, and the words of a message and of a memory that tell.
pub(super) struct Topic {
    /// Of both.
    pub both: &'static str,
    /// Of a message alone.
    pub asked: &'static str,
    /// Of a memory alone.
    pub said: &'static str,
}

/// By place: [`super::topics::Topics`] names some of them.
pub(super) const TOPICS: [Topic; 13] = [
    // Everybody who lives here.
    Topic {
        both: "",
        asked: "all everyone everybody anyone anybody household family guests alle jemand familie \
            gaste tous famille monde ensemble todos alguien familia nosotros noen familien sammen \
            全家 咱们 我们家 大家 家族 みんな 全員 ทั้งบ้าน ทุกคน ใคร",
        said: "",
    },
    // What to cook; who does not eat what.
    Topic {
        both: "",
        asked: "cook- dinner lunch breakfast supper recipe- menu meal- bake baking cake barbecue bbq \
            restaurant snack- eat eating food takeaway koch- abendessen mittagessen fruhstuck- \
            rezept- essen gericht kuchen grill- backe backen cuisin- diner dejeuner repas \
            recette- gateau- manger mange plat gouter cocin- cena cenar comida comidas comer \
            receta- tarta- pastel barbacoa restaurante almuerzo desayuno merienda plato middag- \
            lunsj frokost oppskrift- mat maten spise- spiser kake- grille- 做饭 吃 菜 晚饭 午饭 \
            早饭 晚餐 午餐 聚餐 火锅 蛋糕 餐厅 食谱 烧烤 料理 ごはん ご飯 夕食 夕飯 昼食 朝食 \
            献立 弁当 レシピ 食べ ケーキ レストラン กับข้าว อาหาร เมนู กินข้าว เค้ก ร้านอาหาร \
            กิน pizza- pasta soup- salad- sauce curry fry roast pie- crumble pudding- sandwich- \
            pancake- burger- dessert- chips starter- course- ingredient- serve kosten eis suppe- \
            salat- torte- pfannkuchen nudel- auflauf- braten nachtisch dessert zutat- gange \
            plats tarte- quiche crepe- gratin- soupe- salade- glace- raclette entree- \
            ingredient- apero paella- tortilla- sopa- ensalada- helado- postre- plato- \
            ingrediente- merendar cocino almuerzo- suppe- gryte- taco- salat- dessert- \
            ingrediens- servere kveldsmat grillmat julemat bakst 汤 面条 饺子 包子 油焖 炖 红烧 \
            甜点 点心 零食 忌口 丼 カレー 鍋 おかず おやつ 食材 メニュー แกง ผัด ต้ม ขนม \
            มื้อเย็น มื้อ",
        said: "-allerg- vegetar- vegan- intoleran- lactose gluten- coeliac celiac diabet- diet eat \
            eats sugary salt meat pork spicy laktose- zoliakie vertragt isst fleisch- salz- \
            unvertraglich- regime vegetalien- mange sel viande celiac- comer dieta sal carne \
            alergi- intoleran- spiser taler diett kjott- svinekjott 过敏 吃素 不吃 不能吃 糖尿病 \
            忌口 アレルギー 食べられない 苦手 糖質 糖尿病 菜食 แพ้ เบาหวาน กินเจ มังสวิรัติ \
            กินเผ็ด กินไม่ได้ hives sugar dislike- hate- dairy nuts shellfish kosher halal \
            alcohol vertragen laktoseintolerant nusse nussallergie mag zucker- alkohol- \
            schweinefleisch deteste- supporte allergie- sucre porc azucar marisco soporta gusta \
            prohibid- cerdo hater sukker- talte skalldyr notter alkohol- 不爱吃 爱吃 清真 忌 \
            甜食 虾 海鲜 不喝 ヴィーガン 食べない 飲めない 甲殻類 ไม่กิน ถั่ว กุ้ง มัง",
    },
    Topic {
        both: "birthday- born bday geburtstag- geboren anniversaire- naissance nee \
            cumpleanos cumple nacio nacid- nacimiento bursdag- fodt fodselsdag- \
            生日 出生 誕生日 生まれ วันเกิด เกิดวันที่ เกิดปี",
        asked: "",
        said: "turns turned twelve? fyller fylt fylte cumplir vollendet 岁 満 อายุครบ",
    },
    Topic {
        both: "wedding- marri- anniversary hochzeit- geheiratet heirat- mariage \
            maries maries boda bodas casaron casar- casaron casad- aniversario bryllup- giftet \
            结婚 结婚纪念 結婚 入籍 แต่งงาน ครบรอบ",
        asked: "",
        said: "",
    },
    // What to give; what somebody likes.
    Topic {
        both: "hobby- hobbies hobbys",
        asked: "present presents gift gifts -geschenk- schenk- cadeau- offrir regalo- regal- \
            julegave- bursdagsgave- gaveide- gavetips 礼物 送什么 买点什么 プレゼント 贈 ของขวัญ \
            ซื้ออะไรให้ surprise surprises uberraschung- mitbringsel surprise- sorpresa- \
            overraskelse- 惊喜 成人礼 贺礼 サプライズ お土産 お礼 ของฝาก เซอร์ไพรส์",
        said: "likes loves fan enjoys collects supports supporter adores liebt gern sammelt aime \
            adore passionne collectionne gusta gustan encanta aficionad- colecciona liker elsker \
            samler 喜欢 球迷 爱好 好き ファン 趣味 ชอบ เชียร์ crazy mad obsessed fanatic \
            favourite favorite passion reads collecting lieblings- begeistert schwarmt liest \
            hort verruckt fou folle jure raffole prefere favori- loca loco apasiona favorit- \
            fanatico elsk- leser glad favoritt- gal 迷 最爱 收集 爱看 爱听 集めて 目がない \
            大好き หลงรัก สะสม โปรด",
    },
    // Water where it should not be; who and what stops it.
    Topic {
        both: "plumb- stopcock klempner installateur haupthahn plombier fontaner- \
            rorlegger- stoppekran hovedkran 总阀 水管 元栓 水道 วาล์ว ประปา",
        asked: "leak- pipe pipes burst flood- dripping pouring rohr rohrbruch undicht tropft \
            wasserschaden fuite- fuit tuyau- inond- fuga fugas tuberia- gotea inunda- \
            lekk- ror roret spruter drypper 漏水 渗水 水漏れ 水浸し 漏れ 蛇口 ท่อ รั่ว น้ำท่วม",
        said: "shutoff wasserhahn abgedreht robinet paso 水回り valve stopcock- hahn absperr- vanne \
            arret llave hovedstoppekran- 水阀 止水栓",
    },
    Topic {
        both: "fuse fuses breaker breakers electrician sicherung- disjoncteur- \
            electricien- electrique fusible- diferencial electricista sikring- elektriker- \
            电闸 电工 ブレーカー 電器店 เบรกเกอร์ ช่างไฟ",
        asked: "outage blackout socket electric- strom stromausfall steckdose- elektr- courant \
            prise luz apagon enchufe- strommen stikkontakt- elektrisk- \
            停电 跳闸 没电 插座 停電 コンセント ไฟดับ ไฟตก ปลั๊ก",
        said: "",
    },
    Topic {
        both: "size coat jacket trousers jeans shirt- dress sweater clothes clothing \
            kleidergrosse mantel jacke hose hemd pullover kleid kleidung taille veste manteau \
            pantalon- chemise robe vetement- talla camiseta abrigo chaqueta vestido ropa \
            storrelse- klaer jakke- bukse- genser kjole 衣服 裤子 外套 尺码 サイズ コート ズボン \
            เสื้อ กางเกง ไซส์",
        asked: "",
        said: "",
    },
    Topic {
        both: "car vehicle registration plate auto wagen familienwagen kennzeichen voiture \
            immatricul- coche matricul- bil bilen elbil familiebil- registreringsnummer- regnr \
            skilt- 车牌 汽车 ナンバー ทะเบียน",
        asked: "van truck lorry parking nummernschild transporter lieferwagen plaque kangoo \
            aparcamiento furgoneta matricula varebil 车位 車 รถ",
        said: "",
    },
    Topic {
        both: "dog dogs puppy cat cats kitten pet pets vet hund hunde hunden katze katzen- kater \
            tierarzt- haustier- -futter- chien- chat chatte croquettes veterinaire perro- gato- \
            pienso veterinari- mascota- katt- dyrlege- veterinaer dyreklinikk torrfor 宠物 狗粮 \
            猫粮 ペット 動物病院 สัตว์เลี้ยง parrot rabbit- hamster tortoise turtle guinea \
            papagei kaninchen meerschwein- schildkrote perroquet lapin- cochons tortue tortuga \
            canario- loro conejo papegoy- kanin- skilpadde 八哥 鸟 兔子 乌龟 カメ 鳥 うさぎ แมว \
            หมา สุนัข เต่า",
        asked: "feed feeding futtern",
        said: "food",
    },
    Topic {
        both: "medicine medication- ibuprofen- aspirin- paracetamol antibiotic- penicillin- tablets \
            medikament- tablette- fieber- antibiotik- medicament- medicamento- medicina- \
            medisin- tablett- 药 薬 แพ้ยา กินยา",
        asked: "painkiller- pill pills headache fever ill sick schmerz- kopfschmerz- kopfweh krank \
            fievre malade doliprane comprime- fiebre dolor pastilla- enferm- feber vondt syk \
            smertestillende ibux paracet- 发烧 头疼 头痛 生病 发炎 感冒 熱 頭痛 風邪 ปวด ป่วย \
            sore painful knee pain- vomit- temperature poorly ache- hurts kaputt ubel erbricht \
            husten bauchweh mal vomit- tousse gorge duele vomit- tos kaster hoste 疼 咳嗽 嗓子 \
            吃药 吐 痛い 咳 เจ็บ ไอ ไข้",
        said: "-allerg- alergi- insulin- blutdruck- anticoagulant- blodfortynnende thermometer 过敏 \
            アレルギー 体温计 体温計 warfarin inhaler asthma migraine- hayfever asthma asthme \
            ventoline migran- sintrom asma migrena astma migrene- medisinen hjertemedisin 哮喘 \
            降压 喘息 飲み薬 花粉症 หอบหืด ยาพ่น ความดัน",
    },
    Topic {
        both: "bins bin rubbish garbage trash recycling waste mull- -tonne restmull \
            altpapier sperrmull abfall- poubelle- dechet- bac recyclage encombrants basura- cubo \
            reciclaje soppel- avfall- matavfall restavfall 垃圾 ゴミ ごみ ขยะ",
        asked: "",
        said: "",
    },
    Topic {
        both: "doctor gp surgery paediatric- pediatr- arzt arztin kinderarzt- hausarzt- medecin \
            docteur medico doctora lege legen fastlege- 医生 医院 看病 小児科 かかりつけ 病院 \
            หมอ โรงพยาบาล dr clinic practice clinica clinique praxis kinderarztin hausarztin \
            cabinet ambulatorio legekontor- legesenter 诊所 クリニック คลินิก",
        asked: "ill sick krank malade enferm- syk 生病 医者 ป่วย",
        said: "",
    },
];

/// Words of a message that asks for something general: a text, a meaning, a translation,
/// what everybody can look up.
pub(super) const GENERAL: &str = "poem poems joke translate translation synonym mean means meaning \
    spell define definition colleague capital wrote invented painted discovered composed president \
    population percent convert kilometres miles ounces \
    gedicht witz ubersetze ubersetz- synonym bedeutet schreibt kollegen kollegin kollege hauptstadt \
    geschrieben erfunden gemalt entdeckt komponiert prasident einwohner prozent \
    poeme blague traduis traduire signifie synonyme collegue capitale invente peint ecrit \
    president habitants pourcent poema chiste traduce traducir significa sinonimo colega companero \
    capital escribio invento pinto descubrio presidente habitantes milla millas kilometros \
    dikt vits oversett- betyr kollega synonym- hovedstad- skrev oppfant malte oppdaget president \
    innbyggere prosent \
    翻译 意思 诗 笑话 同事 同义 首都 发明 作者 总统 人口 世界 \
    意味 訳し 翻訳 ジョーク 同僚 俳句 発明 大統領 人口 世界 \
    แปล ความหมาย กลอน เพื่อนร่วมงาน เมืองหลวง มุก ประธานาธิบดี ประชากร";

/// Words of a memory that says what has changed.
pub(super) const UPDATES: &str = "now since new moved changed sold anymore longer instead already inzwischen mittlerweile \
    jetzt seit nachdem verschoben geandert verkauft gewachsen neue neuer neuen maintenant depuis \
    desormais decale change vendu grandi encore nouveau nouvelle ahora ya desde cambiado vendido \
    nuevo nueva flyttet endret solgt na siden storre ny nytt etter 改了 换了 现在 卖掉 变更 変更 \
    今は 新しく ตอนนี้ เปลี่ยน เลื่อน แล้ว again swapped replaced switched failed retired \
    postponed cancelled canceled rescheduled rebooked no stattdessen umgebucht umgezogen \
    gewechselt ersetzt abgesagt rente statt nunmehr ab wieder present finalement annule reporte \
    remplace demenage partie parti quitte dorenavant plutot cambio paso trasladado anulado \
    aplazado cancelado sustituido mudado vendio dejado finalmente byttet sluttet utsatt avlyst \
    heller erstattet bytta blitt vokst gatt isteden 改成 换到 换成 搬去 搬到 不去了 长个 改到 \
    改为 移った やめて 変わ 替え 大きくなり 引っ越 代わり ย้าย ยกเลิก แทน";
